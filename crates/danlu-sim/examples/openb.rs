#![allow(clippy::all)]
fn main() {
    let dir = "/work/shared/data/traces/openb";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seeds: Vec<u64> = args[0].split('-').map(|x| x.parse().unwrap()).collect();
    let order = std::env::var("ORDER").unwrap_or_default();
    let open = |f: String| std::io::BufReader::new(std::fs::File::open(f).unwrap());
    let mut nodes =
        danlu_sim::trace::openb::read_nodes("nodes", open(format!("{dir}/openb_node_list_gpu_node.csv")))
            .unwrap();
    if order == "reverse" {
        nodes.reverse();
    }
    if order == "permute" {
        let n = nodes.len();
        nodes = (0..n).map(|i| nodes[(i * 487 + 11) % n].clone()).collect();
    }
    for w in &args[1..] {
        let f = if w.contains('/') { w.clone() } else { format!("{dir}/openb_pod_list_{w}.csv") };
        let pods = danlu_sim::trace::openb::read_pods("pods", open(f)).unwrap();
        let mut clock = || {
            let s = std::fs::read_to_string("/proc/self/schedstat").unwrap();
            std::time::Duration::from_nanos(s.split(' ').next().unwrap().parse().unwrap())
        };
        let r: Vec<_> =
            (seeds[0]..=seeds[1]).map(|s| danlu_sim::place::place(&nodes, &pods, s, &mut clock)).collect();
        let m = danlu_sim::place::mean(&r).unwrap();
        let worst = r.iter().map(|r| r.unallocated_percent.at_100).fold(0.0, f64::max);
        println!(
            "{w:12} {:6.3} / {:6.3}  worst {worst:.2} placed {:.0} {:.0}/s",
            m.unallocated_percent.at_100, m.unallocated_percent.at_130, m.placed, m.placements_per_second
        );
    }
}
