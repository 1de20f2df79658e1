// How the languages of code are coloured. Python and C++ are modes of CodeMirror; SASS, PTX and MLIR are read here, token by token.

const NUMBER = /^[-+]?(?:0x[0-9a-fA-F]+|0[fd][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b/;

const SASS = {
  name: "sass",
  startState: () => ({ opcode: false }),
  token(stream, state) {
    if (stream.sol()) {
      state.opcode = true;
      if (stream.match(/^\/\/.*/)) return "comment";
      if (stream.match(/^[.$\w]+:$/)) return "labelName";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(/^\/\*[0-9a-f]+\*\//)) return "comment";
    if (stream.match(/^@!?U?P[T\d]+/)) return "meta";
    if (state.opcode && stream.match(/^[A-Z][\w.]*/)) { state.opcode = false; return "keyword"; }
    if (stream.match(/^`\([.$\w]+\)/) || stream.match(/^label\b/)) return "labelName";
    if (stream.match(/^!?-?~?\|?U?[RPB][ZT\d]+(?:\.[\w.]+)?/) || stream.match(/^SR_[\w.]+/)) return "variableName";
    if (stream.match(NUMBER)) return "number";
    if (stream.match(/^(?:c|desc|gdesc|tmem)(?=\[)/)) return "typeName";
    stream.next();
    return null;
  },
};

const PTX = {
  name: "ptx",
  startState: () => ({ opcode: true }),
  token(stream, state) {
    if (stream.sol()) state.opcode = true;
    if (stream.eatSpace()) return null;
    if (stream.match(/^\/\/.*/)) return "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^@!?%\w+/)) return "meta";
    if (stream.match(/^%[\w.]+/)) return "variableName";
    if (stream.match(/^\$L?_?\w+:?/) || stream.match(/^label\b/)) return "labelName";
    if (state.opcode && stream.match(/^\.[a-z_]\w*/)) return "meta";
    if (state.opcode && stream.match(/^[a-z][\w.:]*/)) { state.opcode = false; return "keyword"; }
    if (stream.match(/^\.[a-z]\w*/)) return "typeName";
    if (stream.match(NUMBER)) return "number";
    if (stream.next() === ";") state.opcode = true;
    return null;
  },
};

const MLIR = {
  name: "mlir",
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^\/\/.*/) || stream.match(/^loc\(#?\w*\)/)) return "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^%[\w#:]+/)) return "variableName";
    if (stream.match(/^[#@][\w.]+/)) return "meta";
    if (stream.match(/^\^\w+:?/)) return "labelName";
    if (stream.match(/^!?(?:tensor|memref|vector|!?tt\.ptr|!ttg\.\w+|[if]\d+|bf16|index)(?=[<\s,)>:]|$)/)) return "typeName";
    if (stream.match(/^[a-z_]\w*(?:\.\w+)+/) || stream.match(/^(?:module|attributes|to|step|iter_args|else)\b/)) return "keyword";
    if (stream.match(NUMBER)) return "number";
    stream.next();
    return null;
  },
};

// A language as an extension of CodeMirror; none for plain text.
function languageOf(library, name) {
  const mode = { python: library.python, cpp: library.cpp, sass: SASS, ptx: PTX, mlir: MLIR }[name];
  return mode ? [library.StreamLanguage.define(mode)] : [];
}

// The colours have a contrast of at least 4.5:1 on the page, on a linked line and on a changed line, in both themes.
function coloursOf(library) {
  const { HighlightStyle, syntaxHighlighting, tags } = library;
  return syntaxHighlighting(HighlightStyle.define([
    { tag: tags.keyword, color: "light-dark(#6B2FB3, #CDB4FF)" },
    { tag: [tags.comment, tags.meta], color: "light-dark(#505A56, #A9B5B0)" },
    { tag: tags.string, color: "light-dark(#0B5A2B, #96DDAF)" },
    { tag: [tags.number, tags.atom, tags.bool], color: "light-dark(#0A4FA3, #9CC8FF)" },
    { tag: [tags.typeName, tags.standard(tags.variableName)], color: "light-dark(#7A3E00, #F0BF85)" },
    { tag: tags.labelName, color: "light-dark(#9C1C4F, #FFA9C6)", fontWeight: "600" },
    { tag: tags.definition(tags.variableName), color: "light-dark(#7A3E00, #F0BF85)" },
  ]));
}
