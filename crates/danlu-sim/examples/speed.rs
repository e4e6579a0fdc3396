#![allow(clippy::all)]
use danlu_sched::*;
use danlu_types::*;
fn main() {
    let n: u32 = std::env::args().nth(1).map_or(5000, |x| x.parse().unwrap());
    let nodes: Vec<Node> = (0..n).map(|i| Node {
        name: NodeName(format!("n{i}")), architecture: "x86_64".into(),
        capacity: NodeCapacity { cpus: Cpus::whole(64), memory: Bytes(512 << 30) },
        devices: (0..8).map(|index| Device { index, kind: DeviceKind::Ascend, model: "910B3".into(), memory: Bytes(0), island: 0, health: Health::Ok }).collect(),
        labels: Default::default(), cordoned: None, address: String::new(), simulated: true,
    }).collect();
    let mut fleet = Fleet::new(&nodes);
    let mut spec = JobSpec::of_command("x"); spec.devices = "1".parse().unwrap(); spec.cpus = Cpus::whole(4); spec.memory = Some(Bytes(16 << 30));
    let id = fleet.shape(&Shape::of(&spec));
    let t = std::time::Instant::now();
    let mut placed = 0;
    for _ in 0..50_000 { fleet.learn(id); if fleet.place(id, &Wish::NONE).is_some() { placed += 1; } }
    println!("{placed} placed, {:.0} tries/s {:.0} placements/s", 50_000.0 / t.elapsed().as_secs_f64(), placed as f64 / t.elapsed().as_secs_f64());
}
