"""The midstream protocol: model, frames, calls, codecs and the merge law. Pure; see SPEC.md."""
