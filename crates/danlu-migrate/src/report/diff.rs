//! Unified diffs that `patch` and `git apply` take.

use similar::TextDiff;

pub(crate) fn unified(path: &str, before: &[u8], after: &[u8]) -> String {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let diff = TextDiff::from_lines(before.as_ref(), after.as_ref());
    diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn a_diff_names_both_sides_and_keeps_a_missing_newline() {
        insta::assert_snapshot!(unified("a.py", b"x\ny\nlast", b"x\nz\nlast"), @r"
        --- a/a.py
        +++ b/a.py
        @@ -1,3 +1,3 @@
         x
        -y
        +z
         last
        \ No newline at end of file
        ");
    }
}
