//! Where each workspace stands with each resource, with who has what it lends and when that comes back.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use danlu_types::api::{Loan, QuotaView, UserUse};
use danlu_types::reason::QuotaResource;
use danlu_types::{Amounts, Bytes, Device, JobId, Node, Sharing};
use jiff::{SignedDuration, Timestamp};

use super::{RESOURCES, Sums, add, capacity, held_by, kinds, lent, less, of_amounts};
use crate::Job;

/// A job that holds something.
struct Holding<'a> {
    job: &'a Job,
    held: Sums,
    on_demand_from: Option<Timestamp>,
    expected_end: Option<Timestamp>,
}

/// Every workspace's standing with every resource that there is or that was promised, by name and resource.
/// `expected_ends` are those of running jobs, where anybody could tell.
pub fn standings<'a>(
    sharing: &Sharing,
    nodes: &[Node],
    active: impl Iterator<Item = &'a Job>,
    expected_ends: &BTreeMap<JobId, Timestamp>,
) -> Vec<QuotaView> {
    let kinds = kinds(nodes);
    let mut used: BTreeMap<String, Sums> =
        sharing.workspaces.keys().map(|name| (name.clone(), Sums::default())).collect();
    let mut holdings: BTreeMap<&str, Vec<Holding>> = BTreeMap::new();
    for job in active {
        let held = held_by(job, &kinds);
        add(used.entry(job.spec.workspace.clone()).or_default(), &held);
        let holding = Holding {
            job,
            held,
            on_demand_from: on_demand_from(job, sharing),
            expected_end: expected_ends.get(&job.id).copied(),
        };
        holdings.entry(&job.spec.workspace).or_default().push(holding);
    }
    let guaranteed: BTreeMap<&str, Sums> =
        used.keys().map(|name| (name.as_str(), of_amounts(&sharing.workspace(name).guaranteed))).collect();
    let all = capacity(nodes, |_| true, |_| true);
    let in_service = capacity(nodes, |node| node.cordoned.is_none(), Device::usable);
    let lent = lent(&all, &used, |name| guaranteed[name]);
    let mut unused = in_service;
    for used in used.values() {
        unused = less(&unused, used);
    }
    let mut promised = Sums::default();
    for guaranteed in guaranteed.values() {
        add(&mut promised, guaranteed);
    }
    let borrowed: BTreeMap<&str, Sums> =
        used.iter().map(|(name, used)| (name.as_str(), less(used, &guaranteed[name.as_str()]))).collect();

    let mut views = Vec::new();
    for (name, used) in &used {
        let rules = sharing.workspace(name);
        let own = holdings.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        for resource in 0..RESOURCES {
            let guaranteed = guaranteed[name.as_str()][resource];
            let most = limit(&rules.limit)[resource];
            if all[resource] == 0 && guaranteed == 0 && used[resource] == 0 {
                continue;
            }
            let may_still = most.map_or(u64::MAX, |most| most.saturating_sub(used[resource]));
            let loans = loans(name, resource, lent[name][resource], &borrowed, &holdings);
            let count = |amount: u64| amount_of(resource, amount);
            let view = QuotaView {
                workspace: name.clone(),
                resource: QuotaResource::ALL[resource],
                guaranteed: count(guaranteed),
                broken: count(broken(guaranteed, promised[resource], in_service[resource])),
                limit: most.map(count),
                used: count(used[resource]),
                borrowed: count(borrowed[name.as_str()][resource]),
                lent: count(lent[name][resource]),
                free: count(may_still.min(unused[resource])),
                text: String::new(),
                users: users(own, resource, limit(&rules.per_user)[resource]),
                loans,
            };
            views.push(QuotaView { text: sentence(&view), ..view });
        }
    }
    views
}

/// From when on a job gives way to whoever was guaranteed what it holds; `None` if it never has to.
fn on_demand_from(job: &Job, sharing: &Sharing) -> Option<Timestamp> {
    let began = job.active().map(|attempt| attempt.running_since().unwrap_or(attempt.placed_at))?;
    let least = SignedDuration::try_from(sharing.minimum_run_time.to_duration()).ok()?;
    let gives_way = job.spec.preemptible && sharing.lending;
    gives_way.then(|| began.checked_add(least).unwrap_or(Timestamp::MAX))
}

/// Its share of what all guarantees together lack, because too much is out of service.
fn broken(guaranteed: u64, promised: u64, in_service: u64) -> u64 {
    let lacking = u128::from(promised.saturating_sub(in_service));
    let share = (lacking * u128::from(guaranteed)).div_ceil(u128::from(promised.max(1)));
    u64::try_from(share).unwrap_or(u64::MAX).min(guaranteed)
}

/// Nobody's devices are marked as lent or not: each borrower has of each lender's in proportion to what it borrows.
fn loans(
    lender: &str,
    resource: usize,
    lent: u64,
    borrowed: &BTreeMap<&str, Sums>,
    holdings: &BTreeMap<&str, Vec<Holding>>,
) -> Vec<Loan> {
    let all: u64 = borrowed.values().map(|sums| sums[resource]).sum();
    let mut loans = Vec::new();
    for (name, sums) in borrowed.iter().filter(|(name, sums)| **name != lender && sums[resource] > 0) {
        let amount = u128::from(lent) * u128::from(sums[resource]) / u128::from(all.max(1));
        let jobs: Vec<&Holding> =
            holdings.get(name).into_iter().flatten().filter(|holding| holding.held[resource] > 0).collect();
        if amount == 0 {
            continue;
        }
        loans.push(Loan {
            workspace: (*name).to_owned(),
            amount: amount_of(resource, u64::try_from(amount).unwrap_or(u64::MAX)),
            on_demand_from: jobs.iter().filter_map(|holding| holding.on_demand_from).min(),
            expected_end: jobs
                .iter()
                .map(|holding| holding.expected_end)
                .try_fold(Timestamp::MIN, |latest, end| end.map(|end| latest.max(end))),
            jobs: jobs.iter().map(|holding| holding.job.id).collect(),
        });
    }
    loans
}

fn users(holdings: &[Holding], resource: usize, limit: Option<u64>) -> Vec<UserUse> {
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    for holding in holdings.iter().filter(|holding| holding.held[resource] > 0) {
        *used.entry(&holding.job.owner).or_default() += holding.held[resource];
    }
    let mut users: Vec<(&str, u64)> = used.into_iter().collect();
    users.sort_by_key(|(_, used)| std::cmp::Reverse(*used));
    let view = |(user, used): (&str, u64)| UserUse {
        user: user.to_owned(),
        used: amount_of(resource, used),
        limit: limit.map(|limit| amount_of(resource, limit)),
    };
    users.into_iter().map(view).collect()
}

fn limit(amounts: &Amounts) -> [Option<u64>; RESOURCES] {
    let sums = of_amounts(amounts);
    let said = [
        amounts.nvidia.is_some(),
        amounts.ascend.is_some(),
        amounts.cpus.is_some(),
        amounts.memory.is_some(),
    ];
    std::array::from_fn(|resource| said[resource].then_some(sums[resource]))
}

fn amount_of(resource: usize, amount: u64) -> f64 {
    match QuotaResource::ALL[resource] {
        QuotaResource::Memory => amount as f64,
        QuotaResource::Nvidia | QuotaResource::Ascend | QuotaResource::Cpus => amount as f64 / 1000.0,
    }
}

fn sentence(view: &QuotaView) -> String {
    let word = |amount: f64| match view.resource {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it came from a whole number"
        )]
        QuotaResource::Memory => Bytes(amount as u64).to_string(),
        _ => amount.to_string(),
    };
    let what = match view.resource {
        QuotaResource::Nvidia => "NVIDIA devices",
        QuotaResource::Ascend => "Ascend devices",
        QuotaResource::Cpus => "CPUs",
        QuotaResource::Memory => "of memory",
    };
    let mut text = format!("uses {} {what}", word(view.used));
    // Writing to a string does not fail.
    let _ = (|| {
        if view.guaranteed > 0.0 {
            write!(text, " of {} guaranteed", word(view.guaranteed))?;
        }
        if let Some(limit) = view.limit {
            write!(text, ", at most {}", word(limit))?;
        }
        if view.broken > 0.0 {
            let broken = word(view.broken);
            write!(
                text,
                "; {broken} of the guarantee cannot be kept while devices or nodes are out of service"
            )?;
        }
        if view.borrowed > 0.0 {
            write!(text, "; {} of it is beyond the guarantee", word(view.borrowed))?;
        }
        for loan in &view.loans {
            write!(text, "; {} lent to `{}`", word(loan.amount), loan.workspace)?;
            match (loan.on_demand_from, loan.expected_end) {
                (Some(from), _) => write!(text, ", back on demand from {from:.0}"),
                (None, Some(end)) => write!(text, ", back when its jobs end, by about {end:.0}"),
                (None, None) => write!(text, ", back when its jobs end"),
            }?;
        }
        write!(text, "; could take {} more now", word(view.free))
    })();
    text
}
