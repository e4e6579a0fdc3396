//! What ranks run, and the marks that they leave: outside Danlu's folders, with the kernel's locks and clock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// WITNESS INDEX STEPS WAY. Holds a lock as long as anything of the rank lives, and tries those of other attempts.
const PROGRAM: &str = r#"#!/bin/sh
witness=$1 index=$2 steps=$3 way=$4 rank=${RANK:-0}
me=$DANLU_ATTEMPT.$rank
mark() { read -r now _ < /proc/uptime; echo "$me $now $1" >> "$witness/marks/$index"; }
exec 8>> "$witness/locks/$index.$me"
flock --nonblock 8 || mark "twice"
mark begins
for other in "$witness/locks/$index".*; do
    case $other in "$witness/locks/$index.$DANLU_ATTEMPT".*) continue ;; esac
    flock --shared --nonblock "$other" true || mark "beside ${other##*/}"
done
trap 'mark told; exit 143' TERM
step=0
[ ! -e "$DANLU_CHECKPOINT_DIR/step.$rank" ] || read -r step < "$DANLU_CHECKPOINT_DIR/step.$rank"
mark "resumes $step"
while [ "$step" -lt "$steps" ]; do
    sleep 1
    step=$((step + 1))
    echo "$step" > "$DANLU_CHECKPOINT_DIR/.step.$rank" && mv "$DANLU_CHECKPOINT_DIR/.step.$rank" "$DANLU_CHECKPOINT_DIR/step.$rank"
    mark "saved $step"
    echo "::danlu checkpoint step=$step"
    echo "step $step of $me"
done
if [ "$way" = fails-once ] && [ "$DANLU_ATTEMPT" = 1 ]; then mark fails; exit 3; fi
echo "last word of $me"
mark ends
"#;

#[derive(Debug)]
pub(crate) struct Witness {
    folder: PathBuf,
}

/// What one rank of one attempt did.
#[derive(Debug, Default, Clone)]
pub(crate) struct Deeds {
    pub(crate) begun: u32,
    /// Another of the same attempt and rank lived.
    pub(crate) twice: u32,
    /// Ranks of other attempts that lived when it began.
    pub(crate) beside: Vec<String>,
    pub(crate) resumed_from: Option<u32>,
    pub(crate) saved: u32,
    pub(crate) failed: bool,
    pub(crate) told: bool,
    pub(crate) ended: u32,
    pub(crate) first: f64,
    pub(crate) last: f64,
}

/// By attempt and rank.
pub(crate) type Marks = BTreeMap<(u32, u32), Deeds>;

impl Witness {
    pub(crate) fn begin(folder: PathBuf) -> Self {
        for name in ["marks", "locks"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join("program"), PROGRAM).unwrap();
        Witness { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn command(&self, index: usize, steps: u64, way: &str) -> String {
        let folder = self.folder.display();
        format!("exec sh {folder}/program {folder} {index} {steps} {way}")
    }

    pub(crate) fn marks(&self, index: usize) -> Marks {
        let text = std::fs::read_to_string(self.folder.join(format!("marks/{index}"))).unwrap_or_default();
        let mut marks = Marks::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let (attempt, rank) = words.next().unwrap().split_once('.').unwrap();
            let at: f64 = words.next().unwrap().parse().unwrap();
            let deeds = marks.entry((attempt.parse().unwrap(), rank.parse().unwrap())).or_default();
            let (what, argument) = (words.next().unwrap(), words.next().unwrap_or_default());
            match what {
                "begins" => deeds.begun += 1,
                "twice" => deeds.twice += 1,
                "beside" => deeds.beside.push(argument.to_owned()),
                "resumes" => deeds.resumed_from = Some(argument.parse().unwrap()),
                "saved" => deeds.saved = argument.parse().unwrap(),
                "fails" => deeds.failed = true,
                "told" => deeds.told = true,
                "ends" => deeds.ended += 1,
                other => panic!("no such mark: {other}"),
            }
            if deeds.first == 0.0 {
                deeds.first = at;
            }
            deeds.last = at;
        }
        marks
    }

    /// Locks that something still holds: ranks that nobody ended.
    pub(crate) fn held(&self) -> Vec<String> {
        let mut held = Vec::new();
        for lock in std::fs::read_dir(self.folder.join("locks")).unwrap().flatten() {
            let file = std::fs::File::open(lock.path()).unwrap();
            if file.try_lock().is_err() {
                held.push(lock.file_name().to_string_lossy().into_owned());
            }
        }
        held.sort();
        held
    }
}
