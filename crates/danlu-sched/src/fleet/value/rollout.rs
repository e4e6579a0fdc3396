//! What is left of a node after it alone was offered each sequence of the sample.
//!
//! All sequences at once: every amount is an array of sixteen-bit lanes, one per sequence, and every step is straight
//! arithmetic on such arrays, which the compiler turns into vector instructions on whatever machine it builds for.

use super::super::board::{Board, Need};
use super::mix::Mix;
use super::sample::{LANES, LEVEL_SHIFT, Lanes, Sample, Several, Single, Step};

/// Devices that the low bits of a level tell apart.
pub(crate) const MOST_DEVICES: usize = 1 << LEVEL_SHIFT;

const IDLE: u16 = 1000 << LEVEL_SHIFT;

/// Thousandths of devices left, summed over the sequences. Takes every worker that fits, on the device that fits best.
/// `levels` are those of devices that are not used up, at most [`MOST_DEVICES`].
pub(crate) fn left_over(steps: &[Step], levels: &[u16], cpus: i16, memory: i16) -> i32 {
    match levels.len() {
        0 => 0,
        1..=8 => left_over_of::<8>(steps, levels, cpus, memory),
        _ => left_over_of::<MOST_DEVICES>(steps, levels, cpus, memory),
    }
}

fn left_over_of<const MOST: usize>(steps: &[Step], levels: &[u16], cpus: i16, memory: i16) -> i32 {
    let mut devices = [[0; LANES]; MOST];
    for ((device, &level), at) in devices.iter_mut().zip(levels).zip(0..) {
        *device = [(level << LEVEL_SHIFT) | at; LANES];
    }
    let devices = &mut devices[..levels.len().min(MOST)];
    let (mut cpus, mut memory) = ([cpus; LANES], [memory; LANES]);
    for step in steps {
        if let Some(several) = &step.several {
            take_several(several, devices, &mut cpus, &mut memory);
        }
        take_one(&step.single, devices, &mut cpus, &mut memory);
    }
    devices.iter().map(level_sum).sum()
}

/// The same for boards with rules, one sequence after the other: such nodes have few distinct states.
pub(crate) fn left_over_by_rules(
    (board, model): (Board, usize),
    (sample, mix): (&Sample, &Mix),
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
fn take_one(single: &Single, devices: &mut [Lanes<u16>], cpus: &mut Lanes<i16>, memory: &mut Lanes<i16>) {
    let mut rest = [u16::MAX; LANES];
    for device in devices.iter() {
        keep_tighter(&mut rest, device, &single.level);
    }
    let mut taken = [0; LANES];
    take_amounts(single, &mut rest, cpus, memory, &mut taken);
    for device in devices.iter_mut() {
        take_from(device, &rest, &taken);
    }
}

// Each of these is one loop over the lanes and a function of its own: inlined into a loop over devices, the compiler
// would vectorise that one instead and gather lanes one by one (ten times slower, seen with Rust 1.95).

/// What would be left of the device that is left with the least. Where the level is too low the difference wraps and is
/// larger than all others, for levels end at 1000 × 32 + 31.
#[inline(never)]
fn keep_tighter(rest: &mut Lanes<u16>, device: &Lanes<u16>, level: &Lanes<u16>) {
    for lane in 0..LANES {
        rest[lane] = rest[lane].min(device[lane].wrapping_sub(level[lane]));
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
fn take_from(device: &mut Lanes<u16>, from: &Lanes<u16>, taken: &Lanes<u16>) {
    for lane in 0..LANES {
        let this = 0_u16.wrapping_sub(u16::from(device[lane] == from[lane]));
        device[lane] = device[lane].wrapping_sub(taken[lane] & this);
    }
}

/// Workers that take several whole devices.
fn take_several(
    several: &Several,
    devices: &mut [Lanes<u16>],
    cpus: &mut Lanes<i16>,
    memory: &mut Lanes<i16>,
) {
    let mut idle = [0; LANES];
    for device in devices.iter() {
        count_idle(&mut idle, device);
    }
    let mut missing = [0; LANES];
    take_amounts_of_several(several, &idle, cpus, memory, &mut missing);
    for device in devices.iter_mut() {
        take_idle(device, &mut missing);
    }
}

#[inline(never)]
fn count_idle(idle: &mut Lanes<i16>, device: &Lanes<u16>) {
    for lane in 0..LANES {
        // A level has at most 15 bits.
        idle[lane] -= -i16::from(device[lane].cast_signed() >= IDLE.cast_signed());
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
fn take_idle(device: &mut Lanes<u16>, missing: &mut Lanes<i16>) {
    for lane in 0..LANES {
        let this =
            -i16::from(device[lane].cast_signed() >= IDLE.cast_signed()) & -i16::from(missing[lane] > 0);
        missing[lane] += this;
        device[lane] -= IDLE & this.cast_unsigned();
    }
}

#[inline(never)]
fn level_sum(device: &Lanes<u16>) -> i32 {
    device.iter().map(|&level| i32::from(level >> LEVEL_SHIFT)).sum()
}
