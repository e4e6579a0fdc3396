//! What is left of a node after it alone was offered each sequence of the sample.
//!
//! All sequences at once: every amount is an array of sixteen-bit lanes, one per sequence, and every step is straight
//! arithmetic on such arrays, which the compiler turns into vector instructions on whatever machine it builds for.

use super::sample::{LANES, LEVEL_SHIFT, Lanes, Step};

/// More devices than fit the low bits of a level are not told apart; see [`LEVEL_SHIFT`].
pub(crate) const MOST_DEVICES: usize = 1 << LEVEL_SHIFT;

const NONE: i16 = i16::MAX;
const IDLE: i16 = 1000 << LEVEL_SHIFT;

/// Thousandths of devices left, summed over the sequences. Takes every worker that fits, on the device that fits best.
/// `levels` are those of devices that are not used up.
pub(crate) fn left_over(steps: &[Step], levels: &[u16], cpus: i16, memory: i16) -> i32 {
    let mut devices = [[0; LANES]; MOST_DEVICES];
    let count = levels.len().min(MOST_DEVICES);
    for (at, (device, &level)) in devices.iter_mut().zip(levels).enumerate() {
        *device = [(level.cast_signed() << LEVEL_SHIFT) | at as i16; LANES];
    }
    let devices = &mut devices[..count];
    let (mut cpus, mut memory) = ([cpus; LANES], [memory; LANES]);
    for step in steps {
        if step.any_several {
            take_several(step, devices, &mut cpus, &mut memory);
        }
        take_one(step, devices, &mut cpus, &mut memory);
    }
    devices.iter().map(level_sum).sum()
}

/// Workers that take one device, a share of one, or none.
fn take_one(step: &Step, devices: &mut [Lanes], cpus: &mut Lanes, memory: &mut Lanes) {
    let mut best = [NONE; LANES];
    for device in devices.iter() {
        keep_tighter(&mut best, device, &step.level);
    }
    let mut taken = [0; LANES];
    take_amounts(step, &best, cpus, memory, &mut taken);
    for device in devices.iter_mut() {
        take_from(device, &best, &taken);
    }
}

// Each of these is one loop over the lanes and a function of its own: inlined into a loop over devices, the compiler
// would vectorise that one instead and gather lanes one by one (ten times slower, measured with Rust 1.95).

#[inline(never)]
fn keep_tighter(best: &mut Lanes, device: &Lanes, level: &Lanes) {
    for lane in 0..LANES {
        let fitting = if device[lane] >= level[lane] { device[lane] } else { NONE };
        best[lane] = best[lane].min(fitting);
    }
}

#[inline(never)]
fn take_amounts(step: &Step, best: &Lanes, cpus: &mut Lanes, memory: &mut Lanes, taken: &mut Lanes) {
    for lane in 0..LANES {
        let fits = (cpus[lane] >= step.cpus[lane])
            & (memory[lane] >= step.memory[lane])
            & ((best[lane] != NONE) | (step.level[lane] == 0))
            & (step.several[lane] == 0);
        let all = -i16::from(fits);
        cpus[lane] -= step.cpus[lane] & all;
        memory[lane] -= step.memory[lane] & all;
        taken[lane] = step.level[lane] & all;
    }
}

#[inline(never)]
fn take_from(device: &mut Lanes, best: &Lanes, taken: &Lanes) {
    for lane in 0..LANES {
        let this = -i16::from(device[lane] == best[lane]);
        device[lane] -= taken[lane] & this;
    }
}

/// Workers that take several whole devices.
fn take_several(step: &Step, devices: &mut [Lanes], cpus: &mut Lanes, memory: &mut Lanes) {
    let mut idle = [0; LANES];
    for device in devices.iter() {
        count_idle(&mut idle, device);
    }
    let mut missing = [0; LANES];
    take_amounts_of_several(step, &idle, cpus, memory, &mut missing);
    for device in devices.iter_mut() {
        take_idle(device, &mut missing);
    }
}

#[inline(never)]
fn count_idle(idle: &mut Lanes, device: &Lanes) {
    for lane in 0..LANES {
        idle[lane] += i16::from(device[lane] >= IDLE);
    }
}

#[inline(never)]
fn take_amounts_of_several(step: &Step, idle: &Lanes, cpus: &mut Lanes, memory: &mut Lanes, missing: &mut Lanes) {
    for lane in 0..LANES {
        let fits = (cpus[lane] >= step.cpus[lane])
            & (memory[lane] >= step.memory[lane])
            & (idle[lane] >= step.several[lane])
            & (step.several[lane] != 0);
        let all = -i16::from(fits);
        cpus[lane] -= step.cpus[lane] & all;
        memory[lane] -= step.memory[lane] & all;
        missing[lane] = step.several[lane] & all;
    }
}

#[inline(never)]
fn take_idle(device: &mut Lanes, missing: &mut Lanes) {
    for lane in 0..LANES {
        let this = -i16::from((device[lane] >= IDLE) & (missing[lane] > 0));
        missing[lane] += this;
        device[lane] -= IDLE & this;
    }
}

#[inline(never)]
fn level_sum(device: &Lanes) -> i32 {
    device.iter().map(|&level| i32::from(level >> LEVEL_SHIFT)).sum()
}
