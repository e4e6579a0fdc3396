//! Dice that fall the same way every time: a seed in, the same numbers out on every machine.

use danlu_types::Span;

/// Splitmix64 (Steele, Lea and Flood, 2014): a counter and three multiplications, good enough for drawing faults and shuffling.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    /// One stream of its own for each `stream`, so that adding a node does not move the faults of the others.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut dice = Dice { state: seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93) };
        dice.next();
        dice
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, each as likely as the others (to within one part in 2³² for any list one could hold).
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Fisher and Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// The time to the next of events that come at random, so often on average.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and the cast saturates"
    )]
    pub(crate) fn time_to_next(&mut self, mean: Span) -> Span {
        // 53 bits, moved by half a step so that neither 0 nor 1 comes out.
        let uniform = ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let milliseconds = -uniform.ln() * mean.milliseconds as f64;
        Span { milliseconds: (milliseconds.ceil() as u64).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_streams_differ() {
        let draw = |seed, stream| {
            let mut dice = Dice::new(seed, stream);
            [dice.next(), dice.next()]
        };
        assert_eq!(draw(7, 0), draw(7, 0));
        assert_ne!(draw(7, 0), draw(7, 1));
        assert_ne!(draw(7, 0), draw(8, 0));
    }

    #[test]
    fn shuffling_loses_nothing() {
        let mut items: Vec<usize> = (0..100).collect();
        Dice::new(3, 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn waiting_times_have_the_mean_they_are_asked_for() {
        let mean = Span::from_seconds(1000);
        let mut dice = Dice::new(1, 0);
        let sum: u64 = (0..20_000).map(|_| dice.time_to_next(mean).milliseconds).sum();
        let measured = sum as f64 / 20_000.0 / 1000.0;
        assert!((970.0..1030.0).contains(&measured), "{measured}");
    }
}
