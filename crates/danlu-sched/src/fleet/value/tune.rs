use std::sync::OnceLock;
static T: OnceLock<Vec<(String, f64)>> = OnceLock::new();
pub(crate) fn tune(name: &str, default: f64) -> f64 {
    let all = T.get_or_init(|| {
        std::env::var("TUNE").unwrap_or_default().split(',').filter_map(|p| { let (a, b) = p.split_once('=')?; Some((a.to_owned(), b.parse().ok()?)) }).collect()
    });
    all.iter().find(|(n, _)| n == name).map_or(default, |(_, v)| *v)
}
