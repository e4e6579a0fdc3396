#![allow(clippy::all)]
use danlu_sched::*;
fn main() {
    let dir = "/work/shared/data/traces/openb";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let open = |f: String| std::io::BufReader::new(std::fs::File::open(f).unwrap());
    let nodes =
        danlu_sim::trace::openb::read_nodes("nodes", open(format!("{dir}/openb_node_list_gpu_node.csv")))
            .unwrap();
    let pods =
        danlu_sim::trace::openb::read_pods("pods", open(format!("{dir}/openb_pod_list_{}.csv", args[0])))
            .unwrap();
    let mut seed: u64 = args[1].parse().unwrap();
    let mut rnd = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 33) as usize) % n
    };
    let mut order: Vec<usize> = (0..pods.len()).collect();
    for i in (1..order.len()).rev() {
        let j = rnd(i + 1);
        order.swap(i, j);
    }
    while order.len() < 9000 {
        order.push(rnd(pods.len()));
    }
    let mut fleet = Fleet::new(&nodes);
    let ids: Vec<_> = pods.iter().map(|p| fleet.shape(p)).collect();
    let (mut arrived, mut drops, mut alloc) = (0u64, std::collections::BTreeMap::new(), 0u64);
    let mut track: std::collections::BTreeMap<String, u64> = Default::default();
    for (n, &p) in order.iter().enumerate() {
        fleet.learn(ids[p]);
        let a = &pods[p].alternatives[0];
        let d = a.count.milli() as u64;
        arrived += d;
        match fleet.place(ids[p], &Wish::NONE) {
            Some(pl) => {
                alloc += d;
                if a.models.is_empty() && d > 0 {
                    *track.entry(nodes[pl.parts[0].node.ordinal()].devices[0].model.clone()).or_default() +=
                        d;
                }
            }
            None => {
                let e = drops.entry((d / 1000, a.models.join("|"))).or_insert((0u64, 0u32, n));
                e.0 += d / 1000;
                e.1 += 1;
            }
        }
        if (n + 1).is_power_of_two() && n > 30 {
            println!(
                "{} {:?}",
                n + 1,
                track.iter().map(|(k, v)| format!("{k}:{}", v / 1000)).collect::<Vec<_>>().join(" ")
            );
        }
        if arrived >= 6212000 {
            break;
        }
    }
    println!("unallocated {:.2}", 100.0 - alloc as f64 / 62120.0);
    println!("{:?}", drops);
    for s in
        fleet.supply(&DeviceAsk { kind: None, models: vec![], count: danlu_types::DeviceCount::whole(1) })
    {
        print!("{}:{}/{} ", s.model.unwrap(), s.free, s.total);
    }
    println!();
}
