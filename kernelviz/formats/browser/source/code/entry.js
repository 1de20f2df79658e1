// The parts of CodeMirror that code_view.js uses. The bundle defines the global variable `CodeMirror`.
import { EditorState, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, gutter, GutterMarker, highlightActiveLine, keymap, lineNumbers, panels } from "@codemirror/view";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { standardKeymap } from "@codemirror/commands";
import { Change, goToNextChunk, goToPreviousChunk, MergeView, presentableDiff } from "@codemirror/merge";
import { python } from "@codemirror/legacy-modes/mode/python";
import { cpp } from "@codemirror/legacy-modes/mode/clike";
import { tags } from "@lezer/highlight";

globalThis.CodeMirror = {
  EditorState, RangeSetBuilder, StateEffect, StateField, Decoration, drawSelection, EditorView, gutter, GutterMarker,
  highlightActiveLine, keymap, lineNumbers, panels, HighlightStyle, StreamLanguage, syntaxHighlighting, openSearchPanel, search, searchKeymap,
  standardKeymap, Change, goToNextChunk, goToPreviousChunk, MergeView, presentableDiff, python, cpp, tags,
};
