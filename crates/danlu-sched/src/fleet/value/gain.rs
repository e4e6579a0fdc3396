//! What it gains to put a worker on a slot: the left-over before and after, and the blocks that are broken by it.

use danlu_types::{Bytes, Cpus};

use super::brief::{SlotContent, fingerprint, level_print};
use super::moves::{Move, Moves, NOTHING_BROKEN};
use super::sample::{CPU_UNIT, MEMORY_UNIT, mixed, units};
use super::tier::TIERS;
use super::{
    Board, CPU_GRAIN, FleetState, GRAIN, LANES_I32, MEMORY_GRAIN, MOST_REMEMBERED, Need, Slot, Value, rollout,
};

/// Stands for what one worker takes, whatever it accepts: those who take the same gain the same on equal slots.
pub(crate) fn print_of(need: Need, cpus: Cpus, memory: Bytes) -> u64 {
    let devices = u64::from(need.devices) << 32 | u64::from(need.share) << 1 | u64::from(need.alone);
    mixed(mixed(mixed(devices) ^ cpus.milli) ^ memory.0)
}

impl Value {
    /// What is known of the ways to put a worker on a slot: everything if that was worked out before, for this or an equal
    /// slot and worker; at least how good it is at most. The slot's brief is up to date.
    pub(crate) fn appraise(&mut self, slot: (&Slot, usize), state: &FleetState, worker: u64) -> Moves {
        let key = self.briefs.known(slot.1).content.wrapping_add(worker);
        match self.settled.get(&key) {
            Some(known) => *known,
            None => self.most_gain(slot, state),
        }
    }

    /// The ways to put a worker on a slot, exactly.
    pub(crate) fn settle(
        &mut self,
        slot: (&Slot, usize),
        state: &FleetState,
        (worker, need, milli_cpus, bytes): (u64, Need, i64, i64),
    ) -> Moves {
        let key = self.briefs.known(slot.1).content.wrapping_add(worker);
        if let Some(known) = self.settled.get(&key) {
            return *known;
        }
        let moves = self.moves(slot, state, need, (milli_cpus, bytes));
        if self.settled.len() >= MOST_REMEMBERED {
            self.settled.clear();
        }
        self.settled.insert(key, moves);
        moves
    }

    /// The ways to put one worker on a slot that has room for it; its brief is up to date.
    fn moves(&mut self, slot: (&Slot, usize), state: &FleetState, need: Need, each: (i64, i64)) -> Moves {
        let (slot, at) = slot;
        let Some(model) = slot.model else {
            // Nothing that anybody waits for is lost here: a little better than the best of the others.
            return Moves::exactly(None, Some(Move { gain: GRAIN * LANES_I32, pattern: NOTHING_BROKEN }));
        };
        if !self.has_sample() {
            return self.tightest(at, need);
        }
        let now = SlotContent {
            slot,
            print: self.briefs.known(at).print,
            milli_cpus: state.milli_cpus[slot.node],
            bytes: state.bytes[slot.node],
        };
        let rest = SlotContent { milli_cpus: now.milli_cpus - each.0, bytes: now.bytes - each.1, ..now };
        let before = self.left_over_now(model, at, now);
        let used = self.on_used_device(model, at, rest, before, need);
        let idle = self.on_idle_devices(model, at, rest, before, need);
        Moves::exactly(used, idle)
    }

    /// A way at least as good as all of [`Value::moves`], at a fraction of the work: nothing can gain more than there is
    /// left over, and breaking up no block costs nothing.
    fn most_gain(&mut self, (slot, at): (&Slot, usize), state: &FleetState) -> Moves {
        let gain = match slot.model {
            Some(model) if self.has_sample() => {
                let print = self.briefs.known(at).print;
                let (milli_cpus, bytes) = (state.milli_cpus[slot.node], state.bytes[slot.node]);
                self.left_over_now(model, at, SlotContent { slot, print, milli_cpus, bytes })
            }
            _ => GRAIN * LANES_I32,
        };
        Moves::at_most(gain)
    }

    /// What is expected to be left over of a slot as it is.
    fn left_over_now(&mut self, model: usize, at: usize, now: SlotContent<'_>) -> i32 {
        if let Some(known) = self.briefs.known(at).left_over {
            return known;
        }
        let left_over = self.left_over(model, at, now, &[]);
        self.briefs.known_mut(at).left_over = Some(left_over);
        left_over
    }

    fn on_used_device(
        &mut self,
        model: usize,
        at: usize,
        rest: SlotContent<'_>,
        before: i32,
        need: Need,
    ) -> Option<(Move, u16)> {
        if !need.is_share() || !rest.slot.board.accepts(need) {
            return None;
        }
        let mut best: Option<(i32, u16)> = None;
        for device in 0..rest.slot.positions.len() {
            let levels = self.briefs.levels(at);
            let level = levels[device];
            if level < need.share || level == 1000 || levels[..device].contains(&level) {
                continue;
            }
            let device = u8::try_from(device).unwrap_or(u8::MAX);
            let after = self.without(at, rest, &[device], need.share);
            let gain = before - self.left_over(model, at, after, &[(device, need.share)]);
            if best.is_none_or(|(other, _)| gain > other) {
                best = Some((gain, level));
            }
        }
        let (gain, level) = best?;
        let pattern = self.broken(at, rest, &[]);
        Some((Move { gain, pattern }, level))
    }

    fn on_idle_devices(
        &mut self,
        model: usize,
        at: usize,
        rest: SlotContent<'_>,
        before: i32,
        need: Need,
    ) -> Option<Move> {
        let idle = self.briefs.known(at).idle;
        if need.devices > idle {
            return None;
        }
        let mut few = [0; rollout::MOST_DEVICES];
        let picked: &[u8] = if rest.slot.board == Board::Any && need.devices as usize <= few.len() {
            // Which ones makes no difference to what is left.
            let devices = (0..=u8::MAX).zip(self.briefs.levels(at)).filter(|(_, level)| **level == 1000);
            let mut count = 0;
            for ((device, _), place) in devices.zip(&mut few).take(need.devices as usize) {
                *place = device;
                count += 1;
            }
            &few[..count]
        } else {
            &rest.slot.board.pick(self.briefs.levels(at), &rest.slot.islands, need)?
        };
        let after = self.without(at, rest, picked, need.share);
        let mut taken = [(0, 0); rollout::MOST_DEVICES];
        let gain = if picked.len() <= taken.len() {
            for (taken, device) in taken.iter_mut().zip(picked) {
                *taken = (*device, need.share);
            }
            before - self.left_over(model, at, after, &taken[..picked.len()])
        } else {
            0
        };
        let pattern = self.broken(at, rest, picked);
        Some(Move { gain, pattern })
    }

    /// The content with this much taken of these devices.
    fn without<'a>(
        &self,
        at: usize,
        content: SlotContent<'a>,
        devices: &[u8],
        share: u16,
    ) -> SlotContent<'a> {
        let levels = self.briefs.levels(at);
        let print = if content.slot.board == Board::Any {
            devices.iter().fold(content.print, |print, &device| {
                let level = levels[usize::from(device)];
                print.wrapping_sub(level_print(level)).wrapping_add(level_print(level - share))
            })
        } else {
            let mut after = levels.to_vec();
            for &device in devices {
                after[usize::from(device)] -= share;
            }
            fingerprint(content.slot.board, &after)
        };
        SlotContent { print, ..content }
    }

    /// The pattern of blocks that are gone when these devices are not idle any more and only this much is left besides.
    fn broken(&mut self, at: usize, rest: SlotContent<'_>, devices: &[u8]) -> u16 {
        let brief = self.briefs.known(at);
        let mut broken = brief.blocks;
        if broken != [0; TIERS] {
            let idle = brief.idle - u32::try_from(devices.len()).unwrap_or(0);
            let mut levels = self.briefs.levels(at);
            let mut after;
            if rest.slot.board != Board::Any {
                after = levels.to_vec();
                for &device in devices {
                    after[usize::from(device)] = 0;
                }
                levels = &after;
            }
            for (broken, tier) in broken.iter_mut().zip(&self.tiers.0).filter(|(before, _)| **before > 0) {
                *broken -= tier.room(rest.slot, levels, idle, rest.milli_cpus, rest.bytes);
            }
        }
        self.patterns.number(broken, &self.tiers, &self.prices.block)
    }

    /// Thousandths of devices left, expected, summed over the lanes, once these shares of devices were taken.
    fn left_over(&mut self, model: usize, at: usize, content: SlotContent<'_>, taken: &[(u8, u16)]) -> i32 {
        let cpus = u64::try_from(content.milli_cpus).unwrap_or(0) / CPU_GRAIN;
        let memory = u64::try_from(content.bytes).unwrap_or(0) / MEMORY_GRAIN;
        let key = content.print.wrapping_add(mixed((cpus << 40) ^ (memory << 16) ^ model as u64));
        if let Some(&known) = self.left_overs.get(&key) {
            return known;
        }
        let (cpus, memory) = (cpus * CPU_GRAIN, memory * MEMORY_GRAIN);
        let mut levels = std::mem::take(&mut self.levels);
        levels.clear();
        levels.extend_from_slice(self.briefs.levels(at));
        for &(device, share) in taken {
            levels[usize::from(device)] -= share;
        }
        let largest = levels.iter().copied().max().unwrap_or(0);
        let left_over = if !self.smallest[model].any_fits(largest, cpus, memory) {
            LANES_I32 * levels.iter().map(|&level| i32::from(level)).sum::<i32>()
        } else if content.slot.board == Board::Any {
            levels.retain(|&level| level > 0);
            let (cpus, memory) = (units(cpus, CPU_UNIT), units(memory, MEMORY_UNIT));
            let few = levels.len().min(rollout::MOST_DEVICES);
            rollout::left_over(&self.steps[model], &levels[..few], cpus, memory)
        } else {
            let on = (content.slot.board, model);
            rollout::left_over_by_rules(on, (&self.samples[model], &self.mix), &levels, (cpus, memory))
        };
        self.levels = levels;
        if self.left_overs.len() >= MOST_REMEMBERED {
            self.left_overs.clear();
        }
        self.left_overs.insert(key, left_over);
        left_over
    }

    /// Before anything is known: where the least is left, and on the device with the least.
    fn tightest(&self, at: usize, need: Need) -> Moves {
        let levels = self.briefs.levels(at);
        let free = i32::try_from(self.briefs.known(at).free).unwrap_or(i32::MAX / 4);
        let fitting = levels.iter().filter(|level| **level >= need.share && **level < 1000);
        let level = fitting.min().copied().filter(|_| need.is_share());
        let idle = self.briefs.known(at).idle >= need.devices;
        let on = |gain: i32| Move { gain, pattern: NOTHING_BROKEN };
        Moves::exactly(level.map(|level| (on(1 - free), level)), idle.then(|| on(-free)))
    }

    /// Everything that is only kept to save time.
    #[cfg(test)]
    pub(crate) fn forget_caches(&mut self) {
        self.left_overs.clear();
        self.settled.clear();
        self.briefs.forget();
    }
}
