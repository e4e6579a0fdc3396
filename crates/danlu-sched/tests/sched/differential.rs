//! The scheduler against the slow and obvious one, on random small cases.

use danlu_sched::Scheduler;
use proptest::prelude::*;

use crate::cases::{Case, a_case, a_shared_case};
use crate::reference::{Said, reference_plan};

/// Plays a case, and compares every plan on the way.
fn play(case: Case) -> Result<(), TestCaseError> {
    let mut world = case.world();
    for step in &case.steps {
        step.take(&mut world);
        let mut fresh = Scheduler::new(&world.nodes, world.sharing.clone()).that_expects_nothing();
        for job in world.jobs.values() {
            fresh.file(job);
        }
        let plan = fresh.plan(world.now);
        let said = Said {
            starts: plan.starts.iter().map(|start| (start.job, start.grants.clone())).collect(),
            preemptions: plan.preemptions.iter().map(|one| (one.victim, one.for_job)).collect(),
        };
        let reference = reference_plan(&world.nodes, &world.sharing, &world.jobs, world.now);
        prop_assert_eq!(said, reference, "at step {:?}", step);
        world.carry_out(&plan);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 4096, ..ProptestConfig::default() })]

    #[test]
    fn the_scheduler_says_what_the_slow_and_obvious_one_says_of_quotas_and_placement(case in a_case(false)) {
        play(case)?;
    }

    #[test]
    fn the_scheduler_says_what_the_slow_and_obvious_one_says_beside_jobs_of_others(
        case in prop_oneof![a_shared_case(false), a_shared_case(true)],
    ) {
        play(case)?;
    }

    #[test]
    fn the_scheduler_says_what_the_slow_and_obvious_one_says_of_preemption(case in a_case(true)) {
        play(case)?;
    }
}
