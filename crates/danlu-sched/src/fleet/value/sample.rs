//! A fixed sample of what may arrive next: sequences of workers drawn from the mix.

use super::super::board::Need;
use super::mix::{Arrival, Mix};

/// Sequences, one per lane.
pub(crate) const LANES: usize = 32;
/// Workers in each. Measured on the openb traces: half as many leave nodes of eight devices unfilled, and with twice as
/// many nothing is gained.
pub(crate) const STEPS: usize = 24;

/// Devices are told apart by the low bits of their level, so that the tightest is found by one minimum.
pub(crate) const LEVEL_SHIFT: u32 = 5;
/// Amounts are rounded so that they fit 16 bits: tenths of a core, and 256 MiB.
pub(crate) const CPU_UNIT: u64 = 100;
pub(crate) const MEMORY_UNIT: u64 = 256 << 20;
/// What no node has.
const TOO_MUCH: i16 = i16::MAX;

pub(crate) type Lanes<T> = [T; LANES];

/// One worker of each sequence, as a node with devices of one model sees them.
#[derive(Debug, Clone)]
pub(crate) struct SampleStep {
    /// Those who take one device, a share of one, or none.
    pub(crate) single: Single,
    /// Those who take several.
    pub(crate) several: Option<Several>,
}

/// Lanes that are not concerned ask for more processors than there are. Amounts are signed because comparing signed
/// numbers is one instruction on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Single {
    pub(crate) cpus: Lanes<i16>,
    pub(crate) memory: Lanes<i16>,
    /// What it takes of the device, shifted.
    pub(crate) level: Lanes<u16>,
}

#[derive(Debug, Clone)]
pub(crate) struct Several {
    pub(crate) cpus: Lanes<i16>,
    pub(crate) memory: Lanes<i16>,
    pub(crate) devices: Lanes<i16>,
}

/// The sequences as numbers of shapes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArrivalSample {
    pub(crate) steps: Vec<[usize; LANES]>,
}

impl ArrivalSample {
    /// The mix, ordered so that neighbours are alike, is cut into as many strata as there are lanes. Each step has one
    /// worker of each stratum, each lane has no stratum twice (a Latin rectangle), and all draws together step through
    /// the mix evenly. This is worth more than twice as many random draws.
    ///
    /// `devices` says how many there are of each model. Who insists on a model of which there is little comes to each of
    /// its nodes the more often, and who takes any model the less: each weighs as much as its share of the devices it
    /// would take.
    pub(crate) fn draw(mix: &Mix, model: usize, devices: &[u64], seed: u64) -> Self {
        let mut random = Random(seed);
        let all: u64 = devices.iter().sum();
        let weight = |arrival: &Arrival| {
            let suitable =
                || devices.iter().zip(&arrival.models).filter(|(_, takes)| **takes).map(|(count, _)| count);
            match arrival.need.devices {
                0 => u128::from(arrival.weight) * 1000,
                _ if arrival.takes(model) => {
                    u128::from(arrival.weight) * 1000 * u128::from(all)
                        / u128::from(suitable().sum::<u64>().max(1))
                }
                _ => 0,
            }
        };
        let mut drawn = even_draws(mix, weight, LANES * STEPS);
        for stratum in drawn.chunks_exact_mut(STEPS) {
            random.shuffle(stratum);
        }
        let mut strata: Vec<usize> = (0..LANES).collect();
        random.shuffle(&mut strata);
        let mut turns: Vec<usize> = (0..LANES).collect();
        random.shuffle(&mut turns);
        // Exclusive or with distinct turns permutes the lanes differently in each step.
        let step = |at: usize| std::array::from_fn(|lane| drawn[strata[lane ^ turns[at]] * STEPS + at]);
        ArrivalSample { steps: (0..STEPS).map(step).collect() }
    }

    /// The sequences as a node sees them whose devices are of this model.
    pub(crate) fn seen_by(&self, mix: &Mix, model: usize) -> Vec<SampleStep> {
        let see = |drawn: &[usize; LANES]| {
            let mut single = Single { cpus: [TOO_MUCH; LANES], memory: [0; LANES], level: [0; LANES] };
            let mut several = Several { cpus: [TOO_MUCH; LANES], memory: [0; LANES], devices: [0; LANES] };
            for (lane, &arrival) in drawn.iter().enumerate() {
                let arrival = &mix.arrivals[arrival];
                let Need { devices, share, .. } = arrival.need;
                let cpus = units(arrival.milli_cpus.next_multiple_of(CPU_UNIT), CPU_UNIT);
                let memory = units(arrival.bytes.next_multiple_of(MEMORY_UNIT), MEMORY_UNIT);
                if devices > 0 && !arrival.takes(model) {
                    continue;
                }
                if devices > 1 {
                    (several.cpus[lane], several.memory[lane]) = (cpus, memory);
                    several.devices[lane] = i16::try_from(devices).unwrap_or(i16::MAX);
                } else {
                    (single.cpus[lane], single.memory[lane]) = (cpus, memory);
                    single.level[lane] = if devices == 1 { share << LEVEL_SHIFT } else { 0 };
                }
            }
            let any = several.devices != [0; LANES];
            SampleStep { single, several: any.then_some(several) }
        };
        self.steps.iter().map(see).collect()
    }
}

/// Numbers of shapes at even distances in the mix.
fn even_draws(mix: &Mix, weight: impl Fn(&Arrival) -> u128, draws: usize) -> Vec<usize> {
    let weights: Vec<u128> = mix.arrivals.iter().map(weight).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|&at| weights[at] > 0).collect();
    order.sort_by(|&one, &other| {
        let key = |at: usize| {
            let arrival = &mix.arrivals[at];
            (arrival.need.devices, arrival.need.share, arrival.milli_cpus, arrival.bytes, &arrival.models, at)
        };
        key(one).cmp(&key(other))
    });
    let total: u128 = order.iter().map(|&at| weights[at]).sum();
    let (mut at, mut below) = (0, 0);
    (0..draws as u128)
        .map(|draw| {
            // The middle of each part: (draw + ½) / draws of the total.
            let quantile = (2 * draw + 1) * total / (2 * draws as u128);
            while at + 1 < order.len() && below + weights[order[at]] <= quantile {
                below += weights[order[at]];
                at += 1;
            }
            order.get(at).copied().unwrap_or(0)
        })
        .collect()
}

/// Whom a slot could take at all, so that one that takes nobody need not be tried with every sequence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Smallest(Vec<(u16, u64, u64)>);

impl Smallest {
    /// Of those who take a device: what each needs of one device, of processors and of memory, without those who need
    /// no less than another in every respect.
    pub(crate) fn of(sample: &ArrivalSample, mix: &Mix, model: usize) -> Self {
        let mut all: Vec<(u16, u64, u64)> = Vec::new();
        for &arrival in sample.steps.iter().flatten() {
            let arrival = &mix.arrivals[arrival];
            let needs = (arrival.need.share, arrival.milli_cpus, arrival.bytes);
            let more = |one: &(u16, u64, u64), other: &(u16, u64, u64)| {
                one.0 >= other.0 && one.1 >= other.1 && one.2 >= other.2
            };
            if arrival.takes(model) && !all.iter().any(|other| more(&needs, other)) {
                all.retain(|other| !more(other, &needs));
                all.push(needs);
            }
        }
        Smallest(all)
    }

    pub(crate) fn any_fits(&self, largest: u16, milli_cpus: u64, bytes: u64) -> bool {
        self.0.iter().any(|needs| needs.0 <= largest && needs.1 <= milli_cpus && needs.2 <= bytes)
    }
}

/// Rounded down, and less than too much.
pub(crate) fn units(amount: u64, unit: u64) -> i16 {
    i16::try_from(amount / unit).unwrap_or(TOO_MUCH).min(TOO_MUCH - 1)
}

/// The stream of `SplitMix64` (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let wide = u128::from(mixed(self.0)) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Spreads close numbers over all 64 bits: the finaliser of `SplitMix64`.
pub(crate) fn mixed(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_insists_on_a_scarce_model_is_expected_there_more_often_and_nowhere_else() {
        let arrival = |weight: u64, models: [bool; 2]| Arrival {
            weight,
            milli_cpus: 1000,
            bytes: 0,
            need: Need { devices: 1, share: 1000, alone: true },
            models: models.to_vec(),
        };
        let arrivals = vec![arrival(9, [true, true]), arrival(1, [false, true])];
        let mix = Mix { arrivals, total: 10, ..Mix::default() };
        let insisting = |model: usize| {
            let sample = ArrivalSample::draw(&mix, model, &[90, 10], 1);
            sample.steps.iter().flatten().filter(|&&drawn| drawn == 1).count()
        };
        // A tenth of all, for a tenth of the devices: as many as of those who go anywhere, 9 to 10.
        assert_eq!(insisting(1), LANES * STEPS * 10 / 19);
        assert_eq!(insisting(0), 0);
    }
}
