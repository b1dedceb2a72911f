"""Seeded random templates: expressions over the context of jinja_snippets, within statements. Most render, some fail; both count."""

NAMES = ["n", "zero", "neg", "f", "t", "no", "null", "s", "empty", "words", "mixed", "csv", "nums", "floats", "names", "nested", "people", "d",
         "quote", "quotes", "html", "xs", "emptyd", "deep", "flags", "messages", "missing"]
SCALARS = ["n", "neg", "f", "zero", "t", "s", "quote", "empty", "null", "missing"]
LISTS = ["nums", "names", "floats", "xs", "deep", "flags", "people", "messages", "csv.split(',')", "range(4)", "[1, 'a', none]", "(1, 2)", "d.items()", "s"]
STRINGS = ["s", "words", "mixed", "csv", "quote", "quotes", "html", "empty", "'abc'", "\"it's\"", "'  x '", "messages[1].content", "names[0]", "d.a"]
FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "string", "list", "first", "last", "join", "join(', ')", "reverse", "sort", "unique",
           "tojson", "tojson(indent=2)", "int", "float", "abs", "round", "default('D')", "default('D', true)", "replace('a', 'X')", "indent(2)",
           "map('string')", "map('upper')", "map(attribute='name')", "select", "reject", "select('string')", "select('defined')",
           "selectattr('name')", "selectattr('name', 'equalto', 'Zoe')", "rejectattr('age', 'none')", "batch(2)", "sum", "min", "max", "items", "dictsort",
           "wordcount", "truncate(8)", "e", "urlencode", "count", "center(9)", "sort(reverse=true)", "tojson(sort_keys=true)", "groupby('name')", "safe"]
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "integer", "float", "true", "false", "odd", "even",
         "callable", "lower", "upper", "divisibleby(2)", "eq(7)", "ne('a')", "in(nums)", "sameas none", "gt 3"]
METHODS = ["strip()", "lstrip()", "rstrip()", "upper()", "lower()", "title()", "capitalize()", "split()", "split(',')", "split(' ', 1)", "rsplit(' ', 1)",
           "splitlines()", "startswith('H')", "endswith('d')", "replace('o', '0')", "replace('l', 'L', 1)", "find('o')", "count('a')", "isdigit()", "strip('H d')",
           "items()", "keys()", "values()", "get('z')", "get('q', 5)", "index(1)", "count(1)", "join(['x', 'y'])", "partition(',')", "isalpha()", "rfind('l')", "zfill(9)"]
ATTRS = ["role", "content", "name", "age", "z", "a", "items", "x", "upper", "nope", "b"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in"]
LITERALS = ["0", "1", "2", "-1", "3.5", "'a'", "'user'", "\"b'c\"", "true", "none", "[]", "{}", "[1, 2]", "{'k': 'v'}", "(1,)", "''", "' '", "'\\n'", "1e3", "10"]


class Maker:
    def __init__(self, rng, context):
        self.rng = rng
        self.context = context

    def pick(self, items):
        return items[self.rng.randrange(len(items))]

    def atom(self):
        kind = self.rng.randrange(8)
        return self.pick([NAMES, NAMES, SCALARS, LISTS, STRINGS, STRINGS, LITERALS, LITERALS][kind])

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        sub = depth - 1
        kind = self.rng.randrange(16)
        if kind < 3:
            return f"{self.operand(sub)} {self.pick(OPERATORS)} {self.operand(sub)}"
        if kind < 6:
            return f"{self.operand(sub)}|{self.pick(FILTERS)}"
        if kind == 6:
            return f"{self.operand(sub)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind == 7:
            return f"{self.operand(sub)}.{self.pick(METHODS)}"
        if kind == 8:
            return f"{self.operand(sub)}.{self.pick(ATTRS)}"
        if kind == 9:
            return f"{self.operand(sub)}[{self.index(sub)}]"
        if kind == 10:
            return f"{self.pick(['not ', '-', '+'])}{self.operand(sub)}"
        if kind == 11:
            return f"{self.expression(sub)} if {self.expression(sub)} else {self.expression(sub)}"
        if kind == 12:
            return "[" + ", ".join(self.expression(sub) for _ in range(self.rng.randrange(4))) + "]"
        if kind == 13:
            return "{" + ", ".join(f"{self.pick(LITERALS[5:8])}: {self.expression(sub)}" for _ in range(self.rng.randrange(3))) + "}"
        if kind == 14:
            return f"'{self.pick(['%s', '[%s]', '%r', '%5s|', '%-4s|', '%%%s'])}' % ({self.expression(sub)},)"
        return f"{self.operand(sub)}|{self.pick(FILTERS)}|{self.pick(FILTERS)}"

    def operand(self, depth):
        text = self.expression(depth)
        return text if depth <= 0 else f"({text})"

    def index(self, depth):
        kind = self.rng.randrange(6)
        if kind < 2:
            return str(self.rng.randrange(-3, 4))
        if kind == 2:
            return "'" + self.pick(ATTRS) + "'"
        parts = [str(self.rng.randrange(-4, 6)) if self.rng.randrange(3) else "" for _ in range(2)]
        if self.rng.randrange(2):
            parts.append(self.pick(["", "-1", "2", "-2", "1"]))
        return ":".join(parts)

    def sign(self):
        return self.pick(["", "", "", "-", "+"])

    def tag(self, text):
        right = self.pick(["", "", "-", "+"])
        return "{%" + self.sign() + " " + text + " " + right + "%}"

    def output(self):
        left, right = self.pick(["", "", "-"]), self.pick(["", "", "-"])
        return "{{" + left + " " + self.expression(self.rng.randrange(4)) + " " + right + "}}"

    def text(self):
        return self.pick(["x", " ", "\n", "  \n", "a b\n  ", "\n\n", "é", "<|tok|>", "\t"])

    def loop_bit(self):
        return self.pick(["{{ loop.index }}", "{{ loop.last }}", "{{ loop.first }}", "{{ loop.revindex0 }}", "{{ loop.length }}", "{{ x }}", "{{ x|string }}",
                          "{{ loop.previtem }}", "{{ loop.nextitem is defined }}", "{{ loop.cycle(1, 'b') }}", "{{ ',' if not loop.last }}"])

    def statement(self, depth):
        body = self.body(depth - 1)
        kind = self.rng.randrange(11)
        if kind == 0:
            return self.tag("if " + self.expression(2)) + body + self.tag("endif")
        if kind == 1:
            return self.tag("if " + self.expression(1)) + body + self.tag("elif " + self.expression(1)) + self.body(depth - 1) + self.tag("else") + self.body(depth - 1) + self.tag("endif")
        if kind in (2, 3):
            condition = self.pick(["", "", " if x", " if x is not none", " if loop is undefined"])
            jump = self.pick(["", "", "{% if loop.index > 2 %}{% break %}{% endif %}", "{% if x == 1 %}{% continue %}{% endif %}"])
            other = self.tag("else") + self.body(depth - 1) if self.rng.randrange(3) == 0 else ""
            return self.tag(f"for x in {self.pick(LISTS)}{condition}") + jump + self.loop_bit() + body + self.loop_bit() + other + self.tag("endfor")
        if kind == 4:
            return self.tag(f"set v = {self.expression(2)}") + "{{ v }}"
        if kind == 5:
            return self.tag("set v" + self.pick(["", " | upper", " | trim"])) + body + self.tag("endset") + "{{ v|length }}{{ v }}"
        if kind == 6:
            return self.tag("set ns = namespace(k=0, v='')") + self.tag(f"for x in {self.pick(LISTS)}") + "{% set ns.k = ns.k + 1 %}{% set ns.v = ns.v ~ x %}" + self.tag("endfor") + "{{ ns.k }}{{ ns.v }}"
        if kind == 7:
            name = self.pick(["m1", "m2"])
            return self.tag(f"macro {name}(p, q={self.pick(LITERALS)})") + "{{ p }}" + body + "{{ q }}" + self.tag("endmacro") + "{{ " + name + "(" + self.expression(1) + self.pick(["", ", 5", ", q='z'"]) + ") }}"
        if kind == 8:
            return self.tag("filter " + self.pick(["upper", "trim", "replace('x', 'y')", "indent(2)", "length"])) + body + self.tag("endfilter")
        if kind == 9:
            return self.tag(f"with w = {self.expression(1)}") + "{{ w }}" + body + self.tag("endwith")
        return "{#" + self.sign() + " note " + self.pick(["", "-", "+"]) + "#}" + body

    def body(self, depth):
        parts = []
        for _ in range(self.rng.randrange(1, 4)):
            kind = self.rng.randrange(3 if depth > 0 else 2)
            parts.append(self.text() if kind == 0 else self.output() if kind == 1 else self.statement(depth))
        return "".join(parts)

    def template(self):
        if self.rng.randrange(2):
            return self.text() + self.output() + self.text()
        return self.body(2) + self.statement(2) + self.body(1)
