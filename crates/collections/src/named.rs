//! Enums whose values have names.

/// Declares an enum without fields. Each value stands beside its name, once: `ALL` has the values in the order of their
/// numbers, and `name` returns the name. Behind a colon, the enum may have another word for `name`.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $enum:ident { $($rest:tt)+ }) => {
        $crate::named! { $(#[$meta])* $vis enum $enum: name { $($rest)+ } }
    };
    ($(#[$meta:meta])* $vis:vis enum $enum:ident: $word:ident {
        $($(#[$of_value:meta])* $value:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        $vis enum $enum {
            $($(#[$of_value])* $value,)+
        }

        impl $enum {
            /// All values, in the order of their numbers.
            #[allow(dead_code, reason = "not each of these enums is listed")]
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// The value in metrics, settings and texts.
            $vis const fn $word(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    named! {
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Letter {
            A = "a",
            B = "b",
        }
    }

    named! {
        #[derive(Clone, Copy)]
        enum Digit: text {
            One = "one",
        }
    }

    #[test]
    fn values_are_in_the_order_of_their_numbers() {
        assert_eq!(Letter::ALL.map(Letter::name), ["a", "b"]);
        assert_eq!(Letter::ALL.map(|letter| letter as usize), [0, 1]);
        assert_eq!(Digit::One.text(), "one");
    }
}
