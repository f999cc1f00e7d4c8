//! Files with random damage: none ends the program, and what JSON is `serde_json` tells.

use crosstie_config::{Amqp, Definitions, EMBEDDED, Format, Source, parse, render};

const MUTATIONS: u64 = 20_000;
/// What mutations put in: every character with a meaning in JSON, and some without.
const PIECES: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "\\udc00", "\\u0041", "\\x", "/",
    "//", "/*", "*/", "#", "'", "0", "1", "-", "+", ".", "e", "E", "0x", "00", "1e5", "-0", "true",
    "null", "NaN", "Infinity", " ", "\t", "\n", "\r", "\u{b}", "\u{c}", "\0", "\u{1f}", "\u{7f}",
    "\u{a0}", "\u{feff}", "\u{2028}", "é", "𝄞",
];

/// SplitMix64: a failure is replayed by its seed.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn mutated(text: &str, state: &mut u64) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=random(state) % 3 {
        let at = random(state) as usize % (characters.len() + 1);
        let end = (at + random(state) as usize % 4).min(characters.len());
        let piece = PIECES[random(state) as usize % PIECES.len()];
        characters.splice(at..end, piece.chars());
    }
    characters.into_iter().collect()
}

/// The only texts left out are those with numbers that `serde_json` cannot hold.
#[test]
fn both_take_the_same_texts_for_json() {
    let small = r#"{"version": 2, "$schema": "a\"b\u00e9\n", "x": [1, -2.5e3, true, null, {"y": ""}], "z": "é𝄞"}"#;
    for seed in 0..MUTATIONS {
        let mut state = seed;
        let original = if seed % 4 == 0 { EMBEDDED } else { small };
        let text = mutated(original, &mut state);
        let wanted = serde_json::from_str::<serde_json::Value>(&text);
        if matches!(&wanted, Err(error) if error.to_string().contains("out of range")) {
            continue;
        }
        let source = Source::new(String::new(), text.clone());
        let problems = parse(&source, Format::Json, &|_| None)
            .err()
            .unwrap_or_default();
        let refused = problems.iter().find(|problem| {
            problem.message.starts_with("not JSON") || problem.message.starts_with("the file is")
        });
        assert!(
            wanted.is_ok() == refused.is_none(),
            "seed {seed}: {wanted:?}, {refused:?}\n{text}"
        );
    }
}

#[test]
fn damaged_yaml_is_shown_with_its_place() {
    let originals = [
        include_str!("../cases/full.yaml"),
        include_str!("../cases/node.yaml"),
    ];
    for seed in 0..MUTATIONS / 10 {
        let mut state = seed;
        let original = originals[seed as usize % originals.len()];
        let source = Source::new("damaged.yaml".into(), mutated(original, &mut state));
        let parsed = parse(&source, Format::Yaml, &|_| None);
        let problems = parsed.map_or_else(|problems| problems, |(_, warnings)| warnings);
        for problem in &problems {
            let (line, column) = source.position(problem.span);
            let said = render(std::slice::from_ref(problem), &source);
            assert!(
                said.starts_with(&format!("damaged.yaml:{line}:{column}: ")),
                "seed {seed}"
            );
        }
    }
}

/// Whatever is taken of a damaged file can be joined to a configuration, and names no user twice.
#[test]
fn damaged_definitions_end_nothing() {
    let original = include_str!("../definitions/rabbitmq-3.10.8.json");
    let mut taken = 0;
    for seed in 0..MUTATIONS / 20 {
        let mut state = seed;
        let text = mutated(original, &mut state);
        let Ok(definitions) = Definitions::parse(text.as_bytes()) else {
            continue;
        };
        taken += 1;
        let mut amqp = Amqp::default();
        amqp.import(&definitions);
        let mut names: Vec<_> = amqp.users.iter().map(|user| &user.name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "seed {seed}: {text}");
    }
    assert!(taken > 50, "{taken} of the damaged files were read");
}
