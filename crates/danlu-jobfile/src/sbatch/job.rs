//! From the options of a script to the fields of a job.

use std::collections::BTreeMap;
use std::ops::Range;

use danlu_types::spec::is_name;
use danlu_types::{Bytes, DeviceKind};
use serde_json::Number;

use super::amounts::{self, GresResource};
use super::body::ScriptScan;
use super::header::{OptionUse, SbatchHeader};
use super::options::{Field, Meaning};
use super::size::{Size, SizeRequest, size};
use super::steps::Step;
use super::{BatchScript, ImportNote, body, line_of};
use crate::diagnostic::{Diagnostic, ValueOrigin};
use crate::merge;
use crate::tree::{SourceTree, SourceValue};

#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub(super) source: &'a str,
    /// The last of each option counts.
    pub(super) fields: BTreeMap<Field, &'a OptionUse>,
    /// Which option asks for devices, the resource's name, and its type.
    wanted: Option<(Field, String, Option<String>)>,
    pub(super) script: BatchScript,
}

pub(super) fn build(header: &SbatchHeader, name: &str, source: &str) -> BatchScript {
    let script = BatchScript {
        tree: SourceTree::empty_map(ValueOrigin::Start),
        diagnostics: header.diagnostics.clone(),
        notes: Vec::new(),
        array: Vec::new(),
    };
    let mut builder = Builder { source, fields: BTreeMap::new(), wanted: None, script };
    builder.sort_out(header);
    builder.name(name);
    let seen = body::look(source, header.body);
    let size = builder.size(&seen.steps);
    builder.devices(&size);
    builder.memory(&size);
    builder.times();
    builder.surroundings();
    builder.steps(&seen.steps);
    builder.command(header, &size, seen);
    let mut script = builder.script;
    script.notes.sort_by_key(|note| note.line);
    script
}

impl<'a> Builder<'a> {
    /// Fields are kept for later; everything else is said now.
    fn sort_out(&mut self, header: &'a SbatchHeader) {
        for given in &header.given {
            let option = self.written(given);
            match given.known.meaning {
                Meaning::OfNoConcern => {}
                Meaning::Instead(what) => self.note(given, format!("`{option}` is not honoured: {what}")),
                Meaning::Refused(hint) => {
                    let message = format!("`{option}` cannot be honoured");
                    self.complain(&given.place, "", message, Some(hint.to_owned()));
                }
                Meaning::Field(field) => {
                    if let Some(earlier) = self.fields.insert(field, given) {
                        let line = line_of(self.source, given.place.start);
                        let text = format!("`{}` is overridden in line {line}", self.written(earlier));
                        self.note(earlier, text);
                    }
                }
            }
        }
        for late in &header.late {
            let text = "comes after the first command, where `sbatch` does not read it either".to_owned();
            let line = line_of(self.source, late.start);
            self.script
                .notes
                .push(ImportNote { line, text: format!("`{}` {text}", &self.source[late.clone()]) });
        }
    }

    pub(super) fn written(&self, given: &OptionUse) -> String {
        self.source.get(given.place.clone()).unwrap_or_default().to_owned()
    }

    pub(super) fn note(&mut self, given: &OptionUse, text: String) {
        let line = line_of(self.source, given.place.start);
        self.script.notes.push(ImportNote { line, text });
    }

    pub(super) fn complain(
        &mut self,
        place: &Range<usize>,
        field: &str,
        message: String,
        label: Option<String>,
    ) {
        let (field, place) = (field.to_owned(), ValueOrigin::File(place.clone()));
        self.script.diagnostics.push(Diagnostic { field, message, label, place });
    }

    pub(super) fn value(&self, field: Field) -> Option<(&'a OptionUse, &'a str)> {
        let given = *self.fields.get(&field)?;
        Some((given, given.value.as_deref().unwrap_or_default()))
    }

    /// The value read; one that cannot be is a diagnostic that says what would do.
    pub(super) fn read<T>(
        &mut self,
        field: Field,
        read: impl FnOnce(&'a str) -> Option<T>,
        accepted: &str,
    ) -> Option<T> {
        let (given, value) = self.value(field)?;
        let found = read(value);
        if found.is_none() {
            let message = format!("`--{}` cannot be `{value}`", given.known.long);
            self.complain(&given.place, "", message, Some(format!("write {accepted}")));
        }
        found
    }

    fn count(&mut self, field: Field) -> Option<u32> {
        let more_than_none = |text: &str| amounts::count(text).filter(|count| *count > 0);
        self.read(field, more_than_none, "a number such as `4`")
    }

    pub(super) fn put(&mut self, key: &str, content: SourceValue, place: ValueOrigin) {
        let tree = SourceTree { content, place: place.clone() };
        self.script.diagnostics.extend(merge::insert(&mut self.script.tree, key, tree, place).err());
    }

    pub(super) fn put_number(&mut self, key: &str, number: u32, place: ValueOrigin) {
        self.put(key, SourceValue::Number(Number::from(number), number.to_string()), place);
    }

    /// Where the first of these options was written that was.
    pub(super) fn place_of(&self, fields: &[Field]) -> ValueOrigin {
        let given = fields.iter().find_map(|field| self.fields.get(field));
        given.map_or(ValueOrigin::Nowhere, |given| ValueOrigin::File(given.place.clone()))
    }

    fn name(&mut self, file: &str) {
        let given = self.value(Field::JobName);
        let stem = file.rsplit('/').next().unwrap_or(file);
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        let wanted = given.map_or(stem, |(_, value)| value);
        if is_name(wanted) {
            let place = self.place_of(&[Field::JobName]);
            return self.put("name", SourceValue::Text(wanted.to_owned()), place);
        }
        let plain = |letter: char| {
            if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' }
        };
        let name: String = wanted.chars().map(plain).take(63).collect();
        let name = name.trim_matches(['.', '_', '-']).to_owned();
        let name = if name.is_empty() { "job".to_owned() } else { name };
        if let Some((given, value)) = given {
            self.note(
                given,
                format!("the name `{value}` becomes `{name}`: letters, digits, `.`, `_` and `-`"),
            );
        }
        let place = self.place_of(&[Field::JobName]);
        self.put("name", SourceValue::Text(name), place);
    }

    fn size(&mut self, steps: &[Step]) -> Size {
        let nodes = |text: &'a str| {
            let least = text.split_once('-').map_or(text, |(least, _)| least);
            amounts::count(least).filter(|count| *count > 0).map(|count| (count, text.contains('-')))
        };
        let nodes = self.read(Field::Nodes, nodes, "a number of nodes such as `2`");
        if let (Some((least, true)), Some((given, value))) = (nodes, self.value(Field::Nodes)) {
            self.note(given, format!("`--nodes={value}`: {least} are taken, never more"));
        }
        let devices_per_node = self.gres();
        if let (Some((2.., _)), Some((given, _))) = (nodes, self.value(Field::Nodes)) {
            let text =
                "workers may share a node that has room for several; those with all devices of a node do not";
            self.note(given, format!("`{}`: {text}", self.written(given)));
        }
        let typed = |builder: &mut Self, field| {
            let found =
                builder.read(field, amounts::typed_count, "a number, or a type and a number: `a100:4`");
            let (model, count) = found?;
            let model = model.map(str::to_owned);
            builder.wanted.get_or_insert_with(|| (field, "gpu".to_owned(), model));
            Some(count)
        };
        let per_node = typed(self, Field::GpusPerNode);
        if let (Some(_), Some((given, _))) = (devices_per_node, self.value(Field::GpusPerNode)) {
            let text = "`--gpus-per-node` is not honoured: `--gres` asks for devices already".to_owned();
            self.note(given, text);
        }
        let devices_per_node = devices_per_node.or(per_node);
        let asked = SizeRequest {
            nodes: nodes.map(|(least, _)| least),
            tasks: self.count(Field::Ntasks),
            tasks_per_node: self.count(Field::NtasksPerNode),
            tasks_per_device: self.count(Field::NtasksPerGpu),
            devices: typed(self, Field::Gpus),
            devices_per_node,
            devices_per_task: typed(self, Field::GpusPerTask),
            cpus_per_task: self.count(Field::CpusPerTask),
            cpus_per_device: self.count(Field::CpusPerGpu),
        };
        let found = size(&asked);
        let mut size = found.unwrap_or_else(|(field, message)| {
            if let Some((given, _)) = self.value(field) {
                let hint = "workers are equal here: each node gets the same".to_owned();
                self.complain(&given.place, "", message, Some(hint));
            }
            Size::default()
        });
        if asked.nodes.is_none()
            && size.nodes == 1
            && size.tasks_per_node > 1
            && let Some((given, _)) = self.value(Field::Ntasks)
        {
            let text = format!("all {} tasks are on one node; `--nodes` spreads them", size.tasks_per_node);
            self.note(given, text);
        }
        self.fit_steps(steps, &mut size);
        let place = self.place_of(&[Field::Nodes, Field::Ntasks]);
        self.put_number("workers", size.nodes, place);
        let place = self.place_of(&[Field::NtasksPerNode, Field::Ntasks]);
        self.put_number("ranks", size.tasks_per_node, place);
        let place =
            self.place_of(&[Field::CpusPerTask, Field::CpusPerGpu, Field::NtasksPerNode, Field::Ntasks]);
        self.put_number("cpus", size.cpus, place);
        if let Some(devices) = asked.devices_per_task {
            // For `srun`, which gives each task its own.
            let place = self.place_of(&[Field::GpusPerTask]);
            self.put("env.SLURM_GPUS_PER_TASK", SourceValue::Text(devices.to_string()), place);
        }
        size
    }

    /// How many devices `--gres` asks for; other resources are remarked upon.
    fn gres(&mut self) -> Option<u32> {
        let (given, value) = self.value(Field::Gres)?;
        let mut found = None;
        for part in value.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "none") {
            let part = part.split('(').next().unwrap_or(part);
            let part = part.strip_prefix("gres/").or_else(|| part.strip_prefix("gres:")).unwrap_or(part);
            let (name, rest) = part.split_once(':').unwrap_or((part, "1"));
            let Some((model, count)) = amounts::typed_count(rest) else {
                let message = format!("`{part}` in `--gres` cannot be read");
                self.complain(&given.place, "", message, Some("write `gpu:2` or `gpu:a100:2`".to_owned()));
                continue;
            };
            if amounts::resource(name, model) == GresResource::Other {
                self.note(given, format!("`{part}` in `--gres` is not honoured: Danlu does not count it"));
            } else if found.is_some() {
                let message = "a worker gets devices of one model".to_owned();
                self.complain(&given.place, "", message, Some("ask for one of them".to_owned()));
            } else {
                self.wanted = Some((Field::Gres, name.to_owned(), model.map(str::to_owned)));
                found = Some(count);
            }
        }
        found
    }

    fn devices(&mut self, size: &Size) {
        let Some((field, name, model)) = self.wanted.clone() else { return };
        if size.devices == 0 {
            return;
        }
        let place = self.place_of(&[field]);
        match amounts::resource(&name, model.as_deref()) {
            GresResource::Device { kind, model } => {
                let kind = match kind {
                    DeviceKind::Nvidia => "nvidia",
                    DeviceKind::Ascend => "ascend",
                };
                self.put("devices.kind", SourceValue::Text(kind.to_owned()), place.clone());
                if let Some(model) = model {
                    self.put("devices.model", SourceValue::Text(model), place.clone());
                }
                self.put_number("devices.count", size.devices, place);
            }
            GresResource::Unknown(whose) => {
                let given = self.fields[&field];
                let message = format!("Danlu does not know {whose} devices");
                let label = "NVIDIA's and Ascend's are given to jobs".to_owned();
                self.complain(&given.place, "", message, Some(label));
            }
            GresResource::Other => {}
        }
    }

    fn memory(&mut self, size: &Size) {
        let times = |bytes: Bytes, count: u32| Bytes(bytes.0.saturating_mul(u64::from(count)));
        let accepted = "a size such as `64G`";
        let per_node = self.read(Field::Mem, amounts::size, accepted);
        let per_cpu = self.read(Field::MemPerCpu, amounts::size, accepted).map(|it| times(it, size.cpus));
        let per_device =
            self.read(Field::MemPerGpu, amounts::size, accepted).map(|it| times(it, size.devices));
        let Some(memory) = per_node.or(per_cpu).or(per_device) else { return };
        if memory.0 == 0 {
            if let Some((given, value)) = self.value(Field::Mem) {
                self.note(
                    given,
                    format!("`--mem={value}`: the job's memory is not limited, and none is kept for it"),
                );
            }
            return;
        }
        let place = self.place_of(&[Field::Mem, Field::MemPerCpu, Field::MemPerGpu]);
        self.put("memory", SourceValue::Text(memory.to_string()), place);
    }

    fn command(&mut self, header: &SbatchHeader, size: &Size, seen: ScriptScan) {
        self.put(
            "compat",
            SourceValue::List(vec![SourceTree::text("slurm", ValueOrigin::Nowhere)]),
            ValueOrigin::Nowhere,
        );
        let body = &self.source[header.body..];
        let wrapped = self.value(Field::Wrap);
        let command = match wrapped {
            Some((_, command)) if body.is_empty() => format!("#!/bin/sh\n{command}\n"),
            Some((given, _)) => {
                let text = "`--wrap` is not honoured: the script has commands of its own".to_owned();
                self.note(given, text);
                self.source.to_owned()
            }
            None if body.is_empty() => {
                let end = self.source.trim_end().len();
                let hint = Some("write what to run, such as `srun python train.py`".to_owned());
                self.complain(&(end..end), "", "the script has no commands".to_owned(), hint);
                self.source.to_owned()
            }
            None => self.source.to_owned(),
        };
        self.script.notes.extend(seen.notes);
        if size.nodes > 1 {
            self.script.notes.extend(seen.of_several_nodes);
        }
        if size.tasks_per_node > 1 && !seen.has_srun {
            // All of it runs in the first task, which must not be kept to the cores of one.
            self.put("binding", SourceValue::Bool(false), ValueOrigin::Nowhere);
        }
        self.put("command", SourceValue::Text(command), ValueOrigin::File(header.body..self.source.len()));
    }
}
