//! `tables!`: the catalogue's notation. Each key is written once, with the field that it is read into.
//!
//! ```text
//! tables! {
//!     /// Options of HTTP.
//!     #[derive(Clone, Debug)]
//!     pub struct WebOptions = static WEB_OPTIONS("transports[web].options", "web options") {
//!         access_log: bool = OFF, "Logs each request.";                // key and field of one name
//!         close_ms => close: Duration = integer(1, 10).or(5), "…";     // key `close_ms`, field `close`
//!         "max-age" => age: Duration as plain::seconds = …, "…";       // read by that function
//!         "paths" = object(&PATHS).required(), "…";                    // a key that the builder reads
//!         "debug" = Kind::Boolean.inert("the log level decides");      // a key without effect
//!         ..TCP_NODELAY => tcp_nodelay: bool;                          // a key that several tables share
//!         ..TYPE, SERVICE_ID;
//!         let kind: WebKind = WebKind::Plain;                          // a field that the builder sets
//!         flat target: JointTarget;                                    // a struct read from the same object
//!     }
//! }
//! ```
//!
//! | item | meaning |
//! |---|---|
//! | `pub struct Type = static NAME(path, name) { … }` | a table, and the struct that its plain keys are read into |
//! | `impl Type = static NAME(path, name) { … }` | the same, with a struct of another crate |
//! | `static NAME(path, name) { … }` | a table whose keys the builder reads |
//! | `const NAME { … }` and `static NAME(path, name) = LIST;` | a list of keys, and a table of them |
//! | `const NAME = "key": kind, "…";` | a key that several tables share |
//! | `tagged NAME(path, name) { "type" => TABLE }` | tables that `type` tells apart |
//! | `words NAME(path) => Type { "word" => Value }` | words, and the values that they are read as; the first is the default |
//! | `pub enum Type = words NAME(path) { … }` | the same, and the enum |

macro_rules! tables {
    () => {};
    (
        $(#[$of:meta])* pub struct $Model:ident =
        $vis:vis static $NAME:ident($path:expr, $name:expr) { $($rows:tt)* } $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows {[$vis] $NAME, $path, $name, new [$(#[$of])*] $Model} [] [] $($rows)*
        }
        $crate::catalogue::table::tables! { $($rest)* }
    };
    (
        impl $Model:ident =
        $vis:vis static $NAME:ident($path:expr, $name:expr) { $($rows:tt)* } $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows {[$vis] $NAME, $path, $name, of $Model} [] [] $($rows)*
        }
        $crate::catalogue::table::tables! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis static $NAME:ident($path:expr, $name:expr) { $($rows:tt)* } $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows {[$(#[$meta])* $vis] $NAME, $path, $name, none} [] [] $($rows)*
        }
        $crate::catalogue::table::tables! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis static $NAME:ident($path:expr, $name:expr) = $keys:ident; $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis static $NAME: $crate::catalogue::Table =
            $crate::catalogue::Table { path: $path, name: $name, keys: $keys };
        $crate::catalogue::table::tables! { $($rest)* }
    };
    ($(#[$meta:meta])* $vis:vis const $NAME:ident { $($rows:tt)* } $($rest:tt)*) => {
        $crate::catalogue::table::tables! { @rows {[$(#[$meta])* $vis] $NAME, list} [] [] $($rows)* }
        $crate::catalogue::table::tables! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis const $NAME:ident = $key:literal: $row:expr $(, $about:expr)?; $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis const $NAME: $crate::catalogue::Key =
            $crate::catalogue::Key { name: $key, $(about: $about,)? ..$row };
        $crate::catalogue::table::tables! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis tagged $NAME:ident($path:expr, $name:expr) {
            $($tag:literal => $table:ident),* $(,)?
        } $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis static $NAME: $crate::catalogue::Tagged = $crate::catalogue::Tagged {
            path: $path,
            name: $name,
            variants: &[$(($tag, &$table)),*],
        };
        $crate::catalogue::table::tables! { $($rest)* }
    };
    (
        $(#[$of:meta])* pub enum $Type:ident = $vis:vis words $NAME:ident($path:expr) {
            $($(#[$each:meta])* $word:literal => $value:ident),* $(,)?
        } $($rest:tt)*
    ) => {
        $(#[$of])*
        pub enum $Type {
            $($(#[$each])* $value,)*
        }
        $crate::catalogue::table::tables! {
            $vis words $NAME($path) => $Type { $($word => $value),* }
            $($rest)*
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis words $NAME:ident($path:expr) $(=> $Type:ident)? {
            $($word:literal $(=> $value:ident)?),* $(,)?
        } $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis static $NAME: $crate::catalogue::Words =
            $crate::catalogue::Words { path: $path, words: &[$($word),*] };
        $crate::catalogue::table::tables!(@words [$($Type)?] $($word $(=> $value)?,)*);
        $crate::catalogue::table::tables! { $($rest)* }
    };
    (@words [] $($rest:tt)*) => {};
    (@words [$Type:ident] $($word:literal => $value:ident,)*) => {
        impl $crate::plain::Word for $Type {
            const WORDS: &[(&str, Self)] = &[$(($word, Self::$value)),*];
        }
    };

    (@rows $head:tt [$($keys:tt)*] [$($fields:tt)*] flat $field:ident: $ty:ty; $($rest:tt)*) => {
        $crate::catalogue::table::tables! {
            @rows $head [$($keys)*] [$($fields)* {$field: $ty, "Read from the same object.", flat}] $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] [$($fields:tt)*]
        let $field:ident: $ty:ty = $init:expr; $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows $head [$($keys)*] [$($fields)* {$field: $ty, "Set by the builder.", init $init}] $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] [$($fields:tt)*]
        $key:ident: $ty:ty $(as $get:path)? = $row:expr, $about:literal; $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows $head
            [$($keys)* ($crate::catalogue::Key { name: stringify!($key), about: $about, ..$row })]
            [$($fields)* {$key: $ty, $about, read stringify!($key), $($get)?}]
            $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] [$($fields:tt)*]
        $key:ident => $field:ident: $ty:ty $(as $get:path)? = $row:expr, $about:literal; $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows $head
            [$($keys)* ($crate::catalogue::Key { name: stringify!($key), about: $about, ..$row })]
            [$($fields)* {$field: $ty, $about, read stringify!($key), $($get)?}]
            $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] [$($fields:tt)*]
        $key:literal => $field:ident: $ty:ty $(as $get:path)? = $row:expr, $about:literal; $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows $head
            [$($keys)* ($crate::catalogue::Key { name: $key, about: $about, ..$row })]
            [$($fields)* {$field: $ty, $about, read $key, $($get)?}]
            $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] $fields:tt $key:literal = $row:expr, $about:expr; $($rest:tt)*) => {
        $crate::catalogue::table::tables! {
            @rows $head
            [$($keys)* ($crate::catalogue::Key { name: $key, about: $about, ..$row })]
            $fields $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] $fields:tt $key:literal = $row:expr; $($rest:tt)*) => {
        $crate::catalogue::table::tables! {
            @rows $head [$($keys)* ($crate::catalogue::Key { name: $key, ..$row })] $fields $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] [$($fields:tt)*]
        ..$shared:expr => $field:ident: $ty:ty $(as $get:path)?; $($rest:tt)*
    ) => {
        $crate::catalogue::table::tables! {
            @rows $head [$($keys)* ($shared)]
            [$($fields)* {$field: $ty, "A key that several tables share.", read $shared.name, $($get)?}]
            $($rest)*
        }
    };
    (@rows $head:tt [$($keys:tt)*] $fields:tt ..$($shared:expr),+; $($rest:tt)*) => {
        $crate::catalogue::table::tables! { @rows $head [$($keys)* $(($shared))+] $fields $($rest)* }
    };

    (@rows {[$(#[$meta:meta])* $vis:vis] $NAME:ident, list} [$(($key:expr))*] []) => {
        $(#[$meta])*
        $vis const $NAME: &[$crate::catalogue::Key] = &[$($key),*];
    };
    (@rows {[$(#[$meta:meta])* $vis:vis] $NAME:ident, $path:expr, $name:expr, none} [$(($key:expr))*] []) => {
        $(#[$meta])*
        $vis static $NAME: $crate::catalogue::Table =
            $crate::catalogue::Table { path: $path, name: $name, keys: &[$($key),*] };
    };
    (@rows {[$($static:tt)*] $NAME:ident, $path:expr, $name:expr, new [$($of:tt)*] $Model:ident}
        $keys:tt [$({$field:ident: $ty:ty, $about:expr, $($get:tt)*})*]
    ) => {
        $crate::catalogue::table::tables! { @rows {[$($static)*] $NAME, $path, $name, none} $keys [] }
        $($of)*
        pub struct $Model {
            $(#[doc = $about] pub $field: $ty,)*
        }
        $crate::catalogue::table::tables! { @section $Model, $({$field, $ty, $($get)*})* }
    };
    (@rows {[$($static:tt)*] $NAME:ident, $path:expr, $name:expr, of $Model:ident}
        $keys:tt [$({$field:ident: $ty:ty, $about:expr, $($get:tt)*})*]
    ) => {
        $crate::catalogue::table::tables! { @rows {[$($static)*] $NAME, $path, $name, none} $keys [] }
        $crate::catalogue::table::tables! { @section $Model, $({$field, $ty, $($get)*})* }
    };
    (@section $Model:ident, $({$field:ident, $ty:ty, $($get:tt)*})*) => {
        impl $crate::plain::Section for $Model {
            fn read(view: $crate::view::View<'_>) -> Self {
                Self { $($field: $crate::catalogue::table::tables!(@get view, $ty, $($get)*),)* }
            }
        }
    };

    (@get $view:ident, $ty:ty, init $init:expr) => { $init };
    (@get $view:ident, $ty:ty, flat) => { <$ty as $crate::plain::Section>::read($view) };
    (@get $view:ident, $ty:ty, read $key:expr, $get:path) => { $get($view, $key) };
    (@get $view:ident, $ty:ty, read $key:expr,) => {
        <$ty as $crate::plain::Plain>::read($view, $key)
    };
}

pub(crate) use tables;
