//! Generic resources, as Slurm writes them: `gpu:a100:8(S:0-1),npu:910b:16`, `gpu:a100:2(IDX:0-1)`.

/// No node has more of anything that we would give out.
const MOST: u32 = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gres {
    pub name: String,
    /// `a100`; none where the site does not tell them apart.
    pub model: Option<String>,
    pub count: u32,
    /// Which of them, where Slurm knows: it does not for those without device files.
    pub indices: Vec<u32>,
}

impl Gres {
    /// As `--gres` wants it, without the count.
    pub fn label(&self) -> String {
        match &self.model {
            Some(model) => format!("{}:{model}", self.name),
            None => self.name.clone(),
        }
    }
}

/// What cannot be read is left out.
pub fn parse_gres(text: &str) -> Vec<Gres> {
    split_outside_brackets(text).into_iter().filter_map(parse_one).collect()
}

/// Of what a node's jobs use, the labels of resources with numbers: `gpu:a100:0(IDX:N/A),npu:910b:3`.
pub(super) fn numbered(text: &str) -> Vec<String> {
    let with_numbers = split_outside_brackets(text).into_iter().filter(|part| part.contains("(IDX:"));
    with_numbers.filter_map(parse_one).map(|gres| gres.label()).collect()
}

fn parse_one(text: &str) -> Option<Gres> {
    let (plain, inner) = match text.split_once('(') {
        Some((plain, rest)) => (plain, rest.trim_end_matches(')')),
        None => (text, ""),
    };
    let plain = plain.trim();
    // Newer releases write `gres/gpu:a100:2` and `gres:gpu:2` where older ones write `gpu:a100:2`.
    let plain = plain.strip_prefix("gres/").or_else(|| plain.strip_prefix("gres:")).unwrap_or(plain);
    let mut parts = plain.split(':');
    let name = parts.next().filter(|name| is_name(name))?;
    let mut rest: Vec<&str> = parts.filter(|part| *part != "no_consume").collect();
    let count = match rest.last().and_then(|last| parse_count(last)) {
        Some(count) => {
            rest.pop();
            count
        }
        // `gpu` alone is one of them.
        None => 1,
    };
    let model = match rest[..] {
        [] => None,
        [model] if is_name(model) => Some(model.to_owned()),
        _ => return None,
    };
    let indices = inner.strip_prefix("IDX:").map(parse_indices).unwrap_or_default();
    Some(Gres { name: name.to_owned(), model, count, indices })
}

fn is_name(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    !text.is_empty() && text != "N/A" && text.len() <= 100 && text.chars().all(plain)
}

/// `8`, `8K`: suffixes are those of bandwidths and the like.
fn parse_count(text: &str) -> Option<u32> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let count: u64 = digits.parse().ok()?;
    (text.len() - digits.len() <= 1).then(|| u32::try_from(count).unwrap_or(MOST).min(MOST))
}

/// `0-1,4`; `N/A` where there is none.
fn parse_indices(text: &str) -> Vec<u32> {
    let mut indices = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>())
            && first <= last
            && last < MOST
        {
            indices.extend(first..=last);
        }
    }
    indices.truncate(MOST as usize);
    indices
}

/// The parts between commas that are in no round or square brackets.
pub(super) fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut depth) = (0, 0_i32);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_has_device_files_has_numbers() {
        let labels = |text: &str| numbered(text).join(" ");
        assert_eq!(labels("gpu:a100:0(IDX:N/A),npu:910b:3"), "gpu:a100");
        assert_eq!(labels("gpu:2(IDX:0,3),shard:a100:1(1/4,0/4)"), "gpu");
        assert_eq!(labels("npu:910b(CNT:8)"), "");
    }

    #[test]
    fn every_way_of_writing_them_is_read() {
        let read = |text: &str| {
            let words: Vec<String> = parse_gres(text)
                .iter()
                .map(|gres| format!("{} x{} {:?}", gres.label(), gres.count, gres.indices))
                .collect();
            words.join("; ")
        };
        let cases = [
            "gpu:a100:8(S:0-1),npu:910b:16",
            "gpu:a100:2(IDX:0-1,4)",
            "gpu:8",
            "gpu",
            "gpu:tesla:no_consume:4",
            "gres/gpu:h100:2,gres:npu:1",
            "gpu:a100:0(IDX:N/A)",
            "gpu(IDX:N/A)",
            "(null)",
            "N/A",
            "",
            "craynetwork:4,bandwidth:lustre:1K",
            "gpu:a:b:c:1,ok:1",
            "gpu:99999999999999999999",
            "GPU:显卡:2",
        ];
        let text: Vec<String> = cases.iter().map(|case| format!("{case} => {}", read(case))).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        gpu:a100:8(S:0-1),npu:910b:16 => gpu:a100 x8 []; npu:910b x16 []
        gpu:a100:2(IDX:0-1,4) => gpu:a100 x2 [0, 1, 4]
        gpu:8 => gpu x8 []
        gpu => gpu x1 []
        gpu:tesla:no_consume:4 => gpu:tesla x4 []
        gres/gpu:h100:2,gres:npu:1 => gpu:h100 x2 []; npu x1 []
        gpu:a100:0(IDX:N/A) => gpu:a100 x0 []
        gpu(IDX:N/A) => gpu x1 []
        (null) => 
        N/A => 
         => 
        craynetwork:4,bandwidth:lustre:1K => craynetwork x4 []; bandwidth:lustre x1 []
        gpu:a:b:c:1,ok:1 => ok x1 []
        gpu:99999999999999999999 => gpu:99999999999999999999 x1 []
        GPU:显卡:2 =>
        ");
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".{0,200}") {
            let _ = parse_gres(&text);
        }

        #[test]
        fn nor_one_that_looks_right(text in "(gpu|npu|gres)[:/a-z0-9()IDX,\\-\\[\\]]{0,60}") {
            for gres in parse_gres(&text) {
                prop_assert!(gres.count <= MOST && gres.indices.len() <= MOST as usize);
            }
        }
    }
}
