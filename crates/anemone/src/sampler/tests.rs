use super::*;

fn settings() -> Generation {
    Generation { temperature: 1.0, seed: Some(1), ..Generation::default() }
}

/// How often each of four tokens is drawn in 20 000 tries.
fn shares(settings: &Generation, logits: &[f32; 4]) -> [f64; 4] {
    let mut sampler = Sampler::new(settings, 4).unwrap();
    let mut counts = [0.0; 4];
    for _ in 0..20_000 {
        counts[sampler.sample(logits).unwrap() as usize] += 1.0 / 20_000.0;
    }
    counts
}

fn assert_near(found: [f64; 4], expected: [f64; 4]) {
    for (found_one, expected_one) in found.iter().zip(expected) {
        assert!((found_one - expected_one).abs() < 0.015, "{found:?}, expected {expected:?}");
    }
}

/// Logits of the probabilities 0.5, 0.3, 0.15, 0.05.
fn logits() -> [f32; 4] {
    [0.5f32, 0.3, 0.15, 0.05].map(f32::ln)
}

#[test]
fn greedy_takes_the_first_of_the_largest() {
    let mut sampler = Sampler::new(&Generation::default(), 5).unwrap();
    assert_eq!(sampler.sample(&[-5.0, -1.0, -1.0, f32::NEG_INFINITY, -2.0]).unwrap(), 1);
    assert_eq!(sampler.sample(&[f32::MIN; 5]).unwrap(), 0);
}

#[test]
fn draws_follow_the_probabilities() {
    assert_near(shares(&settings(), &logits()), [0.5, 0.3, 0.15, 0.05]);
}

#[test]
fn temperature_sharpens_and_flattens() {
    let squares = [0.25, 0.09, 0.0225, 0.0025].map(|weight: f64| weight / 0.365);
    assert_near(shares(&Generation { temperature: 0.5, ..settings() }, &logits()), squares);
    assert_near(shares(&Generation { temperature: 1e-30, ..settings() }, &logits()), [1.0, 0.0, 0.0, 0.0]);
    assert_near(shares(&Generation { temperature: 1e30, ..settings() }, &logits()), [0.25; 4]);
}

#[test]
fn top_k_top_p_and_min_p_cut() {
    assert_near(shares(&Generation { top_k: 2, ..settings() }, &logits()), [0.625, 0.375, 0.0, 0.0]);
    assert_near(shares(&Generation { top_k: 9, ..settings() }, &logits()), [0.5, 0.3, 0.15, 0.05]);
    assert_near(shares(&Generation { top_p: 0.79, ..settings() }, &logits()), [0.625, 0.375, 0.0, 0.0]);
    assert_near(shares(&Generation { top_p: 0.01, ..settings() }, &logits()), [1.0, 0.0, 0.0, 0.0]);
    assert_near(
        shares(&Generation { min_p: 0.29, ..settings() }, &logits()),
        [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0.0],
    );
    // After top-k the probabilities are 0.625 and 0.375, so top-p of 0.6 leaves one.
    assert_near(shares(&Generation { top_k: 2, top_p: 0.6, ..settings() }, &logits()), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn top_p_over_a_large_flat_vocabulary_keeps_its_share() {
    let logits: Vec<f32> = (0..5_000).map(|id| (id % 7) as f32 * 1e-6).collect();
    let mut sampler = Sampler::new(&Generation { top_p: 0.5, ..settings() }, logits.len()).unwrap();
    for _ in 0..50 {
        sampler.sample(&logits).unwrap();
        assert!((2490..=2510).contains(&sampler.candidates.len()), "{}", sampler.candidates.len());
    }
}

#[test]
fn same_seed_same_tokens() {
    let draw = |seed| {
        let mut sampler = Sampler::new(&Generation { seed, ..settings() }, 4).unwrap();
        (0..64).map(|_| sampler.sample(&logits()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(draw(Some(42)), draw(Some(42)));
    assert_ne!(draw(Some(42)), draw(Some(43)));
    assert_ne!(draw(None), draw(None));
}

#[test]
fn repetition_is_penalized_once_for_each_token() {
    let greedy = Generation { repetition_penalty: 2.0, ..Generation::default() };
    let mut sampler = Sampler::new(&greedy, 3).unwrap();
    sampler.observe(&[0, 0, 0, 99]);
    // 3.0 becomes 1.5, not 0.375.
    assert_eq!(sampler.sample(&[3.0, 1.4, -1.0]).unwrap(), 0);
    assert_eq!(sampler.sample(&[3.0, 1.6, -1.0]).unwrap(), 1);
    // Negative logits move away from zero; token 1 was drawn and counts.
    assert_eq!(sampler.sample(&[-1.0, -1.0, -1.9]).unwrap(), 2);
}

#[test]
fn bad_logits_are_errors() {
    for temperature in [0.0, 1.0] {
        let settings = Generation { temperature, ..settings() };
        let mut sampler = Sampler::new(&settings, 3).unwrap();
        for bad in [[0.0, f32::NAN, 0.0], [0.0, f32::INFINITY, 0.0], [f32::NEG_INFINITY; 3]] {
            let error = sampler.sample(&bad).unwrap_err();
            assert!(matches!(error, Error::Logits { .. }), "{error}");
        }
        assert!(sampler.sample(&[]).is_err());
        assert_eq!(sampler.sample(&[f32::NEG_INFINITY, -1e38, f32::NEG_INFINITY]).unwrap(), 1);
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let bad = [
        Generation { temperature: -0.1, ..settings() },
        Generation { temperature: f32::NAN, ..settings() },
        Generation { top_p: 0.0, ..settings() },
        Generation { top_p: f32::NAN, ..settings() },
        Generation { min_p: 1.1, ..settings() },
        Generation { repetition_penalty: 0.0, ..settings() },
        Generation { max_tokens: Some(0), ..settings() },
    ];
    for settings in bad {
        assert!(matches!(Sampler::new(&settings, 4), Err(Error::Setting { .. })), "{settings:?}");
    }
}
