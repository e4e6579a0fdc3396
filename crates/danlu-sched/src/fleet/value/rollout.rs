//! What is left of a node after it alone was offered each sequence of the sample.
//!
//! All sequences at once: every amount is an array of sixteen-bit lanes, one per sequence, and every step is straight
//! arithmetic on such arrays, which the compiler turns into vector instructions on whatever machine it builds for.

use super::super::board::{Board, Need};
use super::mix::Mix;
use super::sample::{ArrivalSample, LANES, LEVEL_SHIFT, Lanes, SampleStep, Several, Single};

/// Devices that the low bits of a level tell apart.
pub(crate) const MOST_DEVICES: usize = 1 << LEVEL_SHIFT;

const IDLE: u16 = 1000 << LEVEL_SHIFT;

/// Devices are handled by fours: what is needed of them is then loaded once for four.
const GROUP: usize = 4;
type Group = [Lanes<u16>; GROUP];

/// Thousandths of devices left, summed over the sequences. Takes every worker that fits, on the device that fits best.
/// `levels` are those of devices that are not used up, at most [`MOST_DEVICES`].
pub(crate) fn left_over(steps: &[SampleStep], levels: &[u16], cpus: i16, memory: i16) -> i32 {
    match levels.len() {
        0 => 0,
        1..=4 => left_over_of::<1>(steps, levels, cpus, memory),
        5..=8 => left_over_of::<2>(steps, levels, cpus, memory),
        _ => left_over_of::<{ MOST_DEVICES / GROUP }>(steps, levels, cpus, memory),
    }
}

fn left_over_of<const GROUPS: usize>(steps: &[SampleStep], levels: &[u16], cpus: i16, memory: i16) -> i32 {
    let mut groups: [Group; GROUPS] = [[[0; LANES]; GROUP]; GROUPS];
    for ((device, &level), at) in groups.as_flattened_mut().iter_mut().zip(levels).zip(0..) {
        *device = [(level << LEVEL_SHIFT) | at; LANES];
    }
    let (mut cpus, mut memory) = ([cpus; LANES], [memory; LANES]);
    for step in steps {
        if let Some(several) = &step.several {
            take_several(several, &mut groups, &mut cpus, &mut memory);
        }
        take_one(&step.single, &mut groups, &mut cpus, &mut memory);
    }
    groups.as_flattened().iter().map(level_sum).sum()
}

/// The same for boards with rules, one sequence after the other: such nodes have few distinct states.
pub(crate) fn left_over_by_rules(
    (board, model): (Board, usize),
    (sample, mix): (&ArrivalSample, &Mix),
    levels: &[u16],
    mut amounts: (u64, u64),
) -> i32 {
    let start = amounts;
    let mut sum = 0;
    for lane in 0..LANES {
        let mut levels = levels.to_vec();
        amounts = start;
        for step in &sample.steps {
            let arrival = &mix.arrivals[step[lane]];
            let Need { devices, share, .. } = arrival.need;
            let fits = arrival.milli_cpus <= amounts.0
                && arrival.bytes <= amounts.1
                && (devices == 0 || arrival.takes(model) && board.room(&levels, arrival.need) > 0);
            if !fits {
                continue;
            }
            amounts = (amounts.0 - arrival.milli_cpus, amounts.1 - arrival.bytes);
            let tightest = levels.iter().zip(0..=u8::MAX).filter(|(level, _)| **level >= share).min();
            let picked = match tightest {
                Some((_, device)) if arrival.need.is_share() => vec![device],
                _ => board.pick(&levels, &[], arrival.need).unwrap_or_default(),
            };
            for device in picked {
                levels[usize::from(device)] -= share;
            }
        }
        sum += levels.iter().map(|&level| i32::from(level)).sum::<i32>();
    }
    sum
}

/// Workers that take one device, a share of one, or none.
fn take_one(single: &Single, groups: &mut [Group], cpus: &mut Lanes<i16>, memory: &mut Lanes<i16>) {
    let mut rest = [u16::MAX; LANES];
    for group in groups.iter() {
        keep_tightest(&mut rest, group, &single.level);
    }
    let mut taken = [0; LANES];
    take_amounts(single, &mut rest, cpus, memory, &mut taken);
    for group in groups.iter_mut() {
        take_from(group, &rest, &taken);
    }
}

// Each of these is one loop over the lanes and a function of its own: inlined into a loop over devices, the compiler
// would vectorise that one instead and gather lanes one by one (ten times slower, seen with Rust 1.95).

/// What would be left of the device that is left with the least. Where the level is too low the difference wraps and is
/// larger than all others, for levels end at 1000 × 32 + 31.
#[inline(never)]
fn keep_tightest(rest: &mut Lanes<u16>, [one, two, three, four]: &Group, level: &Lanes<u16>) {
    for lane in 0..LANES {
        let level = level[lane];
        let half = one[lane].wrapping_sub(level).min(two[lane].wrapping_sub(level));
        let other = three[lane].wrapping_sub(level).min(four[lane].wrapping_sub(level));
        rest[lane] = rest[lane].min(half.min(other));
    }
}

/// Turns `rest` into the level of the device to take from.
#[inline(never)]
fn take_amounts(
    single: &Single,
    rest: &mut Lanes<u16>,
    cpus: &mut Lanes<i16>,
    memory: &mut Lanes<i16>,
    taken: &mut Lanes<u16>,
) {
    for lane in 0..LANES {
        let misfit = -i16::from(single.cpus[lane] > cpus[lane])
            | -i16::from(single.memory[lane] > memory[lane])
            | (rest[lane].cast_signed() >> 15);
        cpus[lane] -= single.cpus[lane] & !misfit;
        memory[lane] -= single.memory[lane] & !misfit;
        rest[lane] = rest[lane].wrapping_add(single.level[lane]);
        taken[lane] = single.level[lane] & !misfit.cast_unsigned();
    }
}

#[inline(never)]
fn take_from([one, two, three, four]: &mut Group, from: &Lanes<u16>, taken: &Lanes<u16>) {
    for lane in 0..LANES {
        let (from, taken) = (from[lane], taken[lane]);
        let take = |level: u16| level.wrapping_sub(taken & 0_u16.wrapping_sub(u16::from(level == from)));
        one[lane] = take(one[lane]);
        two[lane] = take(two[lane]);
        three[lane] = take(three[lane]);
        four[lane] = take(four[lane]);
    }
}

/// Workers that take several whole devices.
fn take_several(several: &Several, groups: &mut [Group], cpus: &mut Lanes<i16>, memory: &mut Lanes<i16>) {
    let mut idle = [0; LANES];
    for group in groups.iter() {
        count_idle(&mut idle, group);
    }
    let mut missing = [0; LANES];
    take_amounts_of_several(several, &idle, cpus, memory, &mut missing);
    for group in groups.iter_mut() {
        take_idle(group, &mut missing);
    }
}

/// All bits where the device is idle; a level has at most 15 bits.
fn is_idle(level: u16) -> i16 {
    -i16::from(level.cast_signed() >= IDLE.cast_signed())
}

#[inline(never)]
fn count_idle(idle: &mut Lanes<i16>, [one, two, three, four]: &Group) {
    for lane in 0..LANES {
        let half = is_idle(one[lane]) + is_idle(two[lane]);
        idle[lane] -= half + is_idle(three[lane]) + is_idle(four[lane]);
    }
}

#[inline(never)]
fn take_amounts_of_several(
    several: &Several,
    idle: &Lanes<i16>,
    cpus: &mut Lanes<i16>,
    memory: &mut Lanes<i16>,
    missing: &mut Lanes<i16>,
) {
    for lane in 0..LANES {
        let misfit = -i16::from(several.cpus[lane] > cpus[lane])
            | -i16::from(several.memory[lane] > memory[lane])
            | -i16::from(several.devices[lane] > idle[lane]);
        cpus[lane] -= several.cpus[lane] & !misfit;
        memory[lane] -= several.memory[lane] & !misfit;
        missing[lane] = several.devices[lane] & !misfit;
    }
}

#[inline(never)]
fn take_idle([one, two, three, four]: &mut Group, missing: &mut Lanes<i16>) {
    for lane in 0..LANES {
        let mut still = missing[lane];
        let mut take = |level: u16| {
            let this = is_idle(level) & -i16::from(still > 0);
            still += this;
            level - (IDLE & this.cast_unsigned())
        };
        one[lane] = take(one[lane]);
        two[lane] = take(two[lane]);
        three[lane] = take(three[lane]);
        four[lane] = take(four[lane]);
        missing[lane] = still;
    }
}

#[inline(never)]
fn level_sum(device: &Lanes<u16>) -> i32 {
    device.iter().map(|&level| i32::from(level >> LEVEL_SHIFT)).sum()
}
