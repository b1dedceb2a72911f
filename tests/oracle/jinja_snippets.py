"""Templates that try one thing each, all rendered with CONTEXT."""

CONTEXT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "<b>é & 'q'</b>\n  two \"lines\"\n"},
        {"role": "assistant", "content": "  Ä answer/with slash </x>  ", "tool_calls": []},
        {"role": "user", "content": ""},
    ],
    "n": 7, "zero": 0, "neg": -3, "f": 2.5, "big": 9007199254740993, "t": True, "no": False, "null": None,
    "s": "Hello, Wörld", "empty": "", "words": "  one two\tthree \n four  ", "lines": "a\nb\r\nc\rd\u2028e\n\nf",
    "mixed": "aßÇdŁ 中文 Ωσς", "digits": "12345", "path": "a/b/c", "csv": "a,b,,c",
    "nums": [3, 1, 2, 10, -1], "floats": [1.5, 2.0, 1e20, 1e-7, 0.1], "names": ["bob", "Alice", "carol", "Bob", "alice"],
    "nested": {"a": {"b": [{"c": 1}, {"c": 2}]}, "items": "shadowed", "k v": 1, "list": [1, [2, [3]]]},
    "people": [{"name": "Zoe", "age": 3, "tags": ["x"]}, {"name": "adam", "age": 3, "tags": []},
               {"name": "Bea", "age": 1}, {"name": "Carl", "age": None, "tags": ["y", "z"]}],
    "d": {"z": 1, "a": "two", "B": None, "c": [1, 2], "e": {"x": 1.0}},
    "quote": "it's", "quotes": "it's \"both\"", "control": "a\x00b\x07\t\x1f\x7f\x80\u00a0\u200b\U0001f600",
    "html": "<a href=\"x\">&'</a>", "xs": [], "emptyd": {}, "deep": [[1, 2], [3, 4]], "flags": [True, False, None, 0, 1, "", "a"],
}

EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
2 ** 3 ** 2
-2 ** 2
2 ** -1
7 // 2
-7 // 2
7 // -2
-7 % 3
7 % -3
7.5 // 2
-7.5 // 2
7.5 % -2
-0.0
0.0 * -1
1 / 3
10 / 5
1e3
1e16
1e15
123456789012345680.0
1.5e-5
0.0001
0.00001
100000.0
1.0e100
5e-324
0.1 + 0.2
1_000_000
0x1F + 0b101 + 0o17
1.
n - -n
+n
-t
t + t
t * 3
n == 7.0
n is even
n is odd
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2
1 == 1.0 == true
'a' < 'b'
'B' < 'a'
[1, 2] < [1, 3]
(1, 2) < (1, 2, 0)
[1, 'a'] == [1, 'a']
{'a': 1} == {'a': 1.0}
(1,) == [1]
none == none
none == missing
missing == other_missing
missing != none
'a' in 'abc'
'' in 'abc'
'z' not in 'abc'
1 in nums
4 not in nums
'a' in d
'q' in d
1 in missing
3 in range(5)
not t
not not t
t and 'x'
no and 'x'
'' or 'y'
'' or 0 or none
n and s
not n == 7
'x' if t
'x' if no
'x' if no else 'y'
('x' if no) is defined
'a' if no else 'b' if no else 'c'
'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1] ~ missing
'a' + 'b'
'a' 'b' "c"
'ab' * 3
3 * 'ab'
'ab' * 0
'ab' * -1
[1] * 3
[1] + [2]
(1,) + (2, 3)
'%s-%d-%5.2f|%-6s|%06d|%x|%%' % ('a', 3, 2.345, 'b', 42, 255)
'%s' % n
'%s %s' % ('a', [1])
'%(a)s %(z)d' % d
'%r' % quote
'%5s|%-5s|%05d' % ('ab', 'cd', 7)
'%+d % d' % (5, 6)
'%e %g %G' % (12345.678, 0.00001, 1e20)
'%c%c' % ('x', 65)
'%s' % ()
'%s %s' % 'a'
'%d' % 'x'
'a' % ()
'a' % missing
'a' % [1]
'a' % range(2)
'a' % n
'a' % 'b'
s[0]
s[-1]
s[1:5]
s[::-1]
s[::2]
s[-3:]
s[:-3]
s[100:]
s[5:2]
s[::-2]
mixed[1]
mixed[2:5]
mixed[::-1]
s[100]
nums[0]
nums[-1]
nums[1:3]
nums[::-1]
nums[::-2]
nums[3:0:-1]
nums[-100:100]
nums[9]
nums['a']
nums[1.0]
nums.0
deep.1.0
range(10)[2:8:3]
range(10)[::-1]|list
range(5)[-1]
range(5)[9]
(1, 2, 3)[1:]
d['z']
d.z
d.a
d['nope']
d.nope
d.nope.deeper
d['nope']['deeper']
missing.x
missing['x']
missing[0]
missing + 1
1 + missing
'a' + missing
missing < 1
-missing
missing ~ 'x'
missing()
nested.items
nested['items']
nested.items()|list|length
nested['k v']
nested.a.b[1].c
nested.list[1][1][0]
none.x
n.x
s.x
nums.x
s.upper
d.items is callable
s.upper()
s.lower()
s.title()
words.title()
"they're bill's friends".title()
'hello wORLD'.capitalize()
'éa'.capitalize()
s.swapcase()
mixed.upper()
mixed.lower()
words.strip()
words.lstrip()
words.rstrip()
'xxhixx'.strip('x')
'xyhiyx'.strip('yx')
'xxhixx'.lstrip('x')
'xxhixx'.rstrip('x')
words.split()
words.split(none)
words.split(none, 1)
words.split(none, 2)
words.rsplit(none, 1)
words.split(' ')
csv.split(',')
csv.split(',', 1)
csv.rsplit(',', 1)
csv.split(',', 0)
csv.split('zz')
''.split()
''.split(',')
csv.split('')
'aXXbXXc'.split('XX')
'aXXbXXc'.rsplit('XX', 1)
csv.split(sep=',', maxsplit=1)
lines.splitlines()
lines.splitlines(true)
''.splitlines()
'\n'.splitlines()
path.partition('/')
path.rpartition('/')
path.partition('|')
path.rpartition('|')
s.startswith('Hell')
s.startswith('hell')
s.startswith(('x', 'He'))
s.startswith('ello', 1)
s.startswith('')
s.endswith('rld')
s.endswith(('a', 'd'))
s.endswith('lo', 0, 5)
s.replace('l', 'L')
s.replace('l', 'L', 1)
s.replace('', '-')
s.replace('', '-', 3)
s.replace('zz', 'y')
s.find('o')
s.find('o', 5)
s.find('zz')
s.rfind('l')
s.index('W')
s.index('zz')
mixed.find('d')
s.count('l')
s.count('')
s.count('l', 3)
'aaaa'.count('aa')
','.join(['a', 'b'])
','.join('abc')
','.join([1])
','.join([])
digits.isdigit()
'12a'.isdigit()
''.isdigit()
'abc'.isalpha()
mixed.isalpha()
'ab1'.isalnum()
' '.isspace()
'abc'.islower()
'ABC'.isupper()
'a'.isupper()
'Ab'.islower()
digits.isdecimal()
'²'.isdigit()
'½'.isnumeric()
'x'.ljust(4)
'x'.rjust(4, '.')
'5'.zfill(3)
'-5'.zfill(4)
'abcd'.removeprefix('ab')
'abcd'.removesuffix('cd')
'abcd'.removesuffix('x')
'{} and {}'.format(1, 'b')
'{0}{1}{0}'.format('a', 'b')
'{a}-{b}'.format(a=1, b=[2])
'{{}}'.format()
'{:>5}|{:<5}|{:^5}|'.format('a', 'b', 'c')
'{:05d} {:x} {:,} {:+}'.format(42, 255, 1234567, 3)
'{:.2f} {:8.3f}'.format(2.345, 1.5)
'{!r} {!s}'.format('a', 'b')
'{0.z} {0[a]}'.format(d)
'{}'.format()
'{:d}'.format('x')
'{'.format()
nums.index(2)
nums.index(99)
nums.count(1)
nums.append(1)
nums.pop()
d.update({'q': 1})
d.pop('z')
d.get('z')
d.get('q')
d.get('q', 'dflt')
d.keys()
d.values()
d.items()
d.keys()|list
d.values()|list
d.items()|list
d.keys()[0]
'z' in d.keys()
d|list
d|length
d.copy()
(1, 2).index(2)
[]
()
(1,)
(1, 2,)
{}
{'a': 1, 'b': [1, (2,)], 3: none}
[1, 'a', "it's", 1.5, none, true, missing, {'k': 'v'}]
quote
[quote]
[quotes]
[control]
control
['\\', '\n', '\t', '\'', '"', '\x01', '\u00e9', '\U0001F600']
'\x41\u0042\103\0\q'
"a\
b"
true
True
false
none
None
[true, none]
1.0
100
-5
floats
range(3)
range(1, 10, 3)
range(5, 0, -2)|list
range(0)|list
range(3)|length
range(-1)|list
range(1, 2, 0)
range('a')
range(1.5)
range(100001)
range(100000)|length
dict(a=1, b='x')
dict({'z': 1}, a=2)
dict([('a', 1), ('b', 2)])
dict()
namespace(a=1).a
namespace(a=1).b
namespace({'x': 5}).x
cycler('a', 'b').next()
abs
n|abs
neg|abs
f|abs
'a'|abs
s|upper
s|lower
'hello there-you (big) world'|title
"it's ME"|title
s|capitalize
n|string
n|string|length
none|string
true|string
missing|upper
none|upper
n|upper
s|length
mixed|length
nums|length
nums|count
n|length
missing|length
none|length
words|trim
'xxaxx'|trim('x')
'xxaxx'|trim(chars='x')
missing|trim
none|trim
5|trim
s|replace('o', '0')
s|replace('o', '0', 1)
s|replace('o', 5)
5|replace('5', 'x')
s|reverse
nums|reverse|list
nums|reverse
(1,2)|reverse|list
d|reverse|list
range(3)|reverse|list
missing|reverse|list
n|reverse
nums|first
nums|last
xs|first
xs|last
s|first
s|last
missing|first
missing|last
d|first
d|last
nums|join
nums|join(', ')
nums|join(d='-')
people|join('+', attribute='name')
s|join('.')
missing|join('x')
none|join('x')
n|join
flags|join(',')
nums|sort
nums|sort(reverse=true)
names|sort
names|sort(case_sensitive=true)
names|sort(true)
people|sort(attribute='name')|map(attribute='name')|list
people|sort(attribute='age')
people|rejectattr('age', 'none')|sort(attribute='age,name')|map(attribute='name')|list
people|rejectattr('age', 'none')|sort(attribute='age', reverse=true)|map(attribute='name')|list
flags|sort
[1, 'a']|sort
s|sort
d|sort
d|dictsort
d|dictsort(true)
d|dictsort(reverse=true)
d|dictsort(by='value')
{'b': 2, 'a': 3}|dictsort(by='value')
{'b': 2, 'a': 3}|dictsort(false, 'value', true)
d|items|list
missing|items|list
nums|items
nested.a|items|first
nums|sum
floats|sum
xs|sum
people|sum(attribute='age')
[1, 2]|sum(start=10)
[[1], [2]]|sum(start=[])
['a']|sum
nums|min
nums|max
names|min
names|max
names|max(case_sensitive=true)
people|min(attribute='name')
xs|min
s|max
nums|unique|list
names|unique|list
names|unique(case_sensitive=true)|list
[1, 1.0, true, 'a', 'A']|unique|list
people|unique(attribute='age')|map(attribute='name')|list
nums|batch(2)|list
nums|batch(2, 0)|list
nums|batch(3, fill_with='x')|list
nums|slice(2)|list
nums|slice(3, 'x')|list
nums|list
s|list
d|list
n|list
(1, 2)|list
nums|map('string')|list
names|map('upper')|list
names|map('replace', 'b', 'X')|list
people|map(attribute='name')|list
people|map(attribute='tags.0')|list
people|map(attribute='nope', default='D')|list
deep|map(attribute=1)|list
deep|map('sum')|list
people|map(attribute='age')|select|list
nums|map
flags|select|list
flags|reject|list
nums|select('odd')|list
nums|reject('odd')|list
nums|select('greaterthan', 2)|list
nums|select('>', 2)|list
nums|select('in', [1, 2])|list
nums|select('divisibleby', 2)|list
flags|select('none')|list
flags|select('string')|list
people|selectattr('age')|map(attribute='name')|list
people|selectattr('age', 'equalto', 3)|map(attribute='name')|list
people|selectattr('age', '==', 3)|list|length
people|rejectattr('age', 'none')|map(attribute='name')|list
people|selectattr('tags', 'defined')|list|length
people|rejectattr('tags')|map(attribute='name')|list
people|selectattr('tags.0', 'defined')|map(attribute='name')|list
messages|selectattr('role', 'equalto', 'user')|list|last
people|groupby('age')|length
people|rejectattr('age', 'none')|groupby('age')
people|selectattr
nums|select('nosuch')
5|int
'5'|int
'5.7'|int
5.9|int
-5.9|int
'x'|int
'x'|int(9)
'x'|int(default=-1)
'0x1f'|int(base=16)
'1f'|int(0, 16)
'101'|int(base=2)
' 42 '|int
'1_000'|int
none|int
[]|int
'1e3'|int
missing|int
true|int
'5'|float
'abc'|float
'abc'|float(1.5)
'1e3'|float
5|float
none|float
' 1.5 '|float
'inf'|float
3.7|round
3|round
2.5|round
3.14159|round(2)
3.14159|round(2, 'floor')
3.14159|round(1, 'ceil')
1234|round(-2)
1250|round(-2)
1350|round(-2)
2.675|round(2)
-2.5|round
7|round(1, 'floor')
'x'|round
3.7|round(method='bad')
missing|default('x')
missing|d('x')
missing|default
''|default('x')
''|default('x', true)
none|default('x')
none|default('x', boolean=true)
d.nope|default('y')
d.nope.q|default('y')
(d.nope or {}).q|default('y')
s|default('x')
html|e
html|escape
n|e
html|safe
html|urlencode
d|urlencode
[('a b', 'c/d')]|urlencode
mixed|urlencode
'a b/c?d=e&f'|urlencode
s|wordcount
words|wordcount
'a b c d e f g h'|truncate(10)
'aaaa bbbb cccc dddd'|truncate(11)
'aaaa bbbb cccc dddd'|truncate(11, true)
'aaaa bbbb cccc dddd'|truncate(11, false, '..', 0)
'short'|truncate(10)
'aaaaaaaaaaaaaaaaaaaaaa'|truncate(8)
'a\nb\n\nc'|indent
'a\nb\n\nc'|indent(2)
'a\nb\n\nc'|indent(2, true)
'a\nb\n\nc'|indent(width=2, blank=true)
'a\nb\n'|indent(2)
'a\nb\n'|indent(2, true, true)
'a'|indent('> ')
''|indent
lines|indent(1)
'x'|center(6)
'x'|center(7)
'xy'|center(7)
'%s=%d'|format('a', 5)
'%(x)s'|format(x=1)
'a'|format
d|attr('z')
d|attr('items')
s|attr('upper')
d|tojson
d|tojson(indent=2)
d|tojson(indent=0)
d|tojson(sort_keys=true)
d|tojson(separators=(',', ':'))
d|tojson(indent=4, separators=(',', ': '))
nested|tojson(indent='\t')
messages|tojson
messages[1]|tojson(ensure_ascii=true)
control|tojson
control|tojson(ensure_ascii=true)
mixed|tojson
floats|tojson
[1.0, 1e20, 1e-7, 0.1, -0.0]|tojson
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1, 2): 3}|tojson
[]|tojson
{}|tojson
[[], {}]|tojson(indent=1)
missing|tojson
[missing]|tojson
range(3)|tojson
d.items()|tojson
(1, 2)|tojson
none|tojson
'a'|tojson
d|tojson|length
'inf'|float|tojson
d|pprint is defined
s is string
n is string
n is number
f is number
t is number
s is number
n is integer
t is integer
f is integer
f is float
n is float
t is boolean
n is boolean
none is none
missing is none
missing is defined
missing is undefined
d.nope is defined
d.z is defined
d.nope is undefined
none is defined
d is mapping
nums is mapping
nums is sequence
s is sequence
d is sequence
n is sequence
missing is sequence
range(3) is sequence
(nums|map('string')) is sequence
nums is iterable
s is iterable
n is iterable
d is iterable
missing is iterable
none is iterable
range is callable
n is callable
t is true
1 is true
no is false
0 is false
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is equalto(7)
n is ne 8
n is lt 8
n is ge 8
n is gt(3)
n is le 7
n is in [7, 8]
n is in(nums)
'a' is lower
'A' is upper
'aB' is lower
s is sameas s
none is sameas none
1 is sameas true
n is not none
n is not string
not n is string
n is even or n is odd
n is odd and s is string
'upper' is filter
'nosuch' is filter
'odd' is test
s is escaped
(1 is odd) ~ 'x'
nums is not mapping
-1|abs
-n|abs
'a' ~ 'b'|upper
('a' ~ 'b')|upper
1 + 2|string|length
n * 2 is even
not missing is defined
[1, 2, 3][1]
{'a': {'b': 5}}.a.b
{'a': 1}['a']
'abc'[1]
'abc'.upper()[0]|lower
(1 if t else 2) + 3
[x, y]
[n, f]|map('string')|join('/')
(nums|map('string'))[0]
(nums|map('string'))|length
nums|map('string')|first
(nums|select('odd')) and 'truthy'
(xs|select) and 'truthy'
xs and 'truthy'
emptyd or 'falsy'
1 in [1.0]
true in [1]
'1' in [1]
none in [none]
[1] in [[1]]
'a' < 1
none < 1
[] < {}
1 + 'a'
'a' + 1
[] + ()
{} + {}
none + 1
'a' * 'b'
'a' - 'b'
1 / 0
1 // 0
1 % 0
1.0 / 0
0 ** -1
4 ** 0.5
n in n
n in s
[][0]
n()
s()
nums()
d()
s.nosuch
s|upper|lower|title
namespace(a=1) is mapping
'\u4e2d'|length
'a\tb'
1 if n > 5 else 2 if n > 3 else 3
'yes' if n is odd and not (n < 3) else 'no'
loop is defined
strftime_now is defined
raise_exception is defined
strftime_now('%Y') | length
raise_exception('stop here: ' ~ n)
raise_exception(d)
messages | map(attribute='content') | map('trim') | select | join('|')
messages[-1].content or 'none'
messages[1:][0].role
messages[::-1][0].role
messages|length - 1
(messages|last).role
messages[messages|length - 1]['role']
messages[0]['content']|trim|length > 3
d.e.x
d['e']['x']
d.c|first
d.c[-1:]
nested.a.b|map(attribute='c')|sum
'<think>' in s
'a</think>b</think>c'.split('</think>')[-1]
'a</think>b'.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
1_0.5
0
00
- 5
- - 5
not 1 in [1]
1 not in [1] == false
(1, 2) ~ ''
2 ** 10
2 * 3 ** 2
10 - 2 - 3
100 // 7 // 2
2 + 3 ~ 4
'a' ~ 1 + 2
7 - 2 ~ 3 * 2
1 < 2 == true
1 == 1 in [true]
n.real
s.__class__
s['__class__']
d.__init__
s._private
""".strip("\n").split("\n")
# a literal newline inside one of them
EXPRESSIONS = [e for e in EXPRESSIONS if e != '"a\\' and e != 'b"'] + ['"a\\\nb"', "'a\nb'"]

STATEMENTS = [
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a\n  {%- if true -%}\n  b\n  {%- endif %}\nc",
    "a\n  {%+ if true %}\n  b\n  {%+ endif +%}\nc",
    "{{- 'a' }}\n{{ 'b' -}}\n c",
    "{# c #}x{#- d -#} y",
    "a\n  {# c #}\nb\n  {#- c -#}\n d {#+ e +#}\n f",
    "  {% if true %}x{% endif %}  \n y",
    "a {% if true %}x{% endif %}\n y",
    "{% if true %}\n\n\nx{% endif %}",
    "x\n\n", "x\n", "\n", "", " \n ", "\r\nx\r\ny\r", "a\rb",
    "{% raw %}{{ x }}{% if %}{% endraw %}|", "a\n  {% raw %}\n x {{ y }}\n  {% endraw %}\nb", "{%- raw -%}  a  {%- endraw -%}  b",
    "{% raw %}{% endraw %}", "{% raw %}{%endraw%}", "{%raw%}a{%+ endraw +%}\nb",
    "{{ '}}' }}{{ '%}' }}{{ {'a': {'b': 1}} }}", "{{ {'a': 1}}}", "{{ [1, 2][0]}}", "{{'a'}}{{\"b\"}}", "{ { } } {x} %}", "{{ 5 % 3 }}", "{{ 5 %3}}",
    "{% if n == 7 %}seven{% elif n == 8 %}eight{% else %}other{% endif %}",
    "{% if n == 8 %}8{% elif n == 7 %}7{% elif n == 6 %}6{% endif %}", "{% if missing %}a{% else %}b{% endif %}", "{% if not missing %}a{% endif %}",
    "{% if n == 1 %}{% elif n == 2 %}{% endif %}x", "{% if 1, 2 %}t{% endif %}", "{% if true: %}x{% endif %}",
    "{% for x in nums %}{{ x }},{% endfor %}", "{% for x in nums %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in nums %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in nums %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }};{% endfor %}", "{% for x in nums %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in xs %}a{% else %}empty{% endfor %}", "{% for x in nums %}{% else %}empty{% endfor %}", "{% for x in missing %}a{% else %}none{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in n %}{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }};{% endfor %}",
    "{% for c in s %}{{ c }}.{% endfor %}", "{% for c in mixed %}{{ c }}.{% endfor %}", "{% for i in range(3) %}{{ i }}{% endfor %}", "{% for a, b in deep %}{{ a }}{{ b }}{% endfor %}", "{% for (a, b) in deep %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for a, b in nums %}{% endfor %}",
    "{% for x in nums if x > 1 %}{{ loop.index }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}", "{% for x in nums if x > 100 %}{% else %}none{% endfor %}", "{% for x in nums if x is odd %}{{ loop.length }}{{ loop.revindex }}{{ loop.last }};{% endfor %}",
    "{% for x in nums if loop is defined %}a{% endfor %}", "{% for x in nums %}{% for y in nums if loop.index > 2 %}{{ loop.index }}{% endfor %}{% endfor %}",
    "{% for x in nums|map('string') %}{{ loop.length }}{{ loop.last }}{{ x }};{% endfor %}", "{% for x in nums|reverse %}{{ x }}{{ loop.revindex }};{% endfor %}",
    "{% set ns = namespace(go=true) %}{% for x in nums if ns.go %}{{ x }}{% if x == 1 %}{% set ns.go = false %}{% endif %}{% endfor %}",
    "{% set ns = namespace(go=true) %}{% for x in nums if ns.go %}{{ x }}{{ loop.last }}{% if x == 1 %}{% set ns.go = false %}{% endif %}{% endfor %}",
    "{% for x in nums %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in nums %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in nums %}{% for y in nums %}{% if y == 2 %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}",
    "{% for x in nums %}{% break %}{% else %}e{% endfor %}", "{% for x in nums %}{% set q %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endset %}{{ q }}{% endfor %}|", "{% break %}", "{% continue %}", "{% for x in nums %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in nums %}{{ loop }}{% endfor %}|" if False else "{% for x in nums %}{{ loop is defined }}{% endfor %}{{ loop is defined }}",
    "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}", "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "{% set x = 1 %}{% for i in nums %}{% set x = x + i %}{{ x }},{% endfor %}{{ x }}",
    "{% for i in nums %}{% set y = i %}{% endfor %}{{ y is defined }}", "{% for i in nums %}{{ y is defined }}{% set y = i %}{{ y }}{% endfor %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = nums[:2] %}{{ a }}{{ b }}", "{% set a, b = 1 %}", "{% set a = 1, %}{{ a }}",
    "{% set (a, b) = 'xy' %}{{ a }}{{ b }}", "{% set x = [1, 2] %}{{ x[1] }}", "{% set x %}a{{ n }}b{% endset %}{{ x }}{{ x|length }}", "{% set x | upper %}a{{ s }}b{% endset %}{{ x }}", "{% set x | replace('a', 'z') | upper %}abc{% endset %}{{ x }}", "{% set x %}{% set inner = 5 %}{% endset %}{{ inner is defined }}",
    "{% set ns = namespace(a=1, b=[]) %}{% set ns.a = ns.a + 1 %}{% set ns.c = 'new' %}{{ ns.a }}{{ ns.b }}{{ ns.c }}", "{% set ns = namespace() %}{% for i in nums %}{% set ns.x = i %}{% endfor %}{{ ns.x }}", "{% set d.z = 5 %}", "{% set q.z = 5 %}", "{% set ns = namespace(a=0) %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}",
    "{% set ns = namespace(a=1) %}{% macro m() %}{% set ns.a = 2 %}{% endmacro %}{{ m() }}{{ ns.a }}", "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t ~ m.role[0] %}{% endfor %}{{ ns.t }}",
    "{% set n = 99 %}{{ n }}", "{{ n }}{% set n = 99 %}{{ n }}", "{% if false %}{% set n = 5 %}{% endif %}{{ n }}", "{% for i in [1] %}{{ n }}{% set n = 5 %}{{ n }}{% endfor %}{{ n }}",
    "{% set messages = messages[1:] %}{{ messages|length }}", "{% if true %}{% set loop_messages = messages[1:] %}{% else %}{% set loop_messages = messages %}{% endif %}{{ loop_messages|length }}",
    "{% macro m(a, b='B', c=none) %}[{{ a }}|{{ b }}|{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(1, c=3) }}{{ m(b=1, a=2) }}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, b=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a, b) %}{{ a }}{{ b is defined }}{% endmacro %}{{ m(1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ a }}{{ varargs|join('-') }}{% endmacro %}{{ m(1, 2, 3) }}",
    "{% macro m() %}{{ later }}{% endmacro %}{{ m() }}{% set later = 5 %}{{ m() }}", "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% macro m() %}x{% endmacro %}{{ m }}", "{% macro m() %}x{% endmacro %}{{ m()|upper }}{{ m() ~ m() }}{{ m() * 2 }}",
    "{% macro m() %}\n  x\n{% endmacro %}[{{ m() }}]", "{% macro m() %}{% set q = 5 %}{{ q }}{% endmacro %}{{ m() }}{{ q is defined }}", "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m(x) %}{{ loop is defined }}{% endmacro %}{% for i in [1] %}{{ m(i) }}{% endfor %}", "{{ m() }}{% macro m() %}x{% endmacro %}",
    "{% set ns = namespace() %}{% macro m() %}x{% endmacro %}{% set ns.m = m %}{{ ns.m() }}", "{% macro m() %}x{% endmacro %}{{ {'k': m}.k() }}", "{% macro m(f) %}{{ f() }}{% endmacro %}{% macro g() %}G{% endmacro %}{{ m(g) }}", "{% macro m(a, a) %}{% endmacro %}" if False else "{% macro m(*a) %}{% endmacro %}",
    "{% macro m(x) %}<{{ caller() }}{{ x }}>{% endmacro %}{% call m(1) %}body{{ n }}{% endcall %}", "{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call n %}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% filter upper %}a{{ s }}b{% endfilter %}", "{% filter replace('a', 'b')|upper %}aab{% endfilter %}", "{% filter trim %}\n  x \n{% endfilter %}|", "{% filter nosuch %}{% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}", "{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}{% endwith %}",
    "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q is defined }}", "{%- generation -%}\n x {%- endgeneration -%}\n y",
    "{% print n, s %}", "{% print 'a' ~ 1 %}", "{{ 1, 2 }}", "{{ 1, }}", "{{ }}", "{{", "{%", "{# x", "{% if %}{% endif %}", "{% if true %}", "{% endif %}", "{% for x in nums %}", "{% for in nums %}{% endfor %}", "{% for x nums %}{% endfor %}", "{% for x in nums %}{% endif %}", "{% else %}",
    "{% foo %}", "{% 5 %}", "{{ a b }}", "{{ 'a }}", "{{ (1 }}", "{{ 1) }}", "{{ [1} }}", "{{ @ }}", "{{ a.}}", "{{ a. b }}", "{{ a..b }}", "{{ a|}}", "{{ a|5 }}", "{{ a is }}", "{{ a is not }}", "{{ a is b is c }}", "{{ a is nosuch }}", "{{ a|nosuch }}", "{{ f(a=1, 2) }}", "{{ f(**a, b) }}", "{{ dict(a=1, a=2) }}", "{{ not }}", "{{ a if }}", "{{ if a }}", "{{ 1 + }}", "{{ * 1 }}", "{{ {1} }}", "{{ {1:} }}", "{{ [1,,2] }}", "{{ 'a' 'b' }}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% set a.b.c = 2 %}", "{% set %}", "{% set a %}", "{% macro %}{% endmacro %}", "{% macro 1() %}{% endmacro %}", "{% if a = b %}{% endif %}", "{{ a = b }}", "{{ '\\x4' }}", "{{ '\\u12' }}", "{{ '\\x41\\u00e9' }}", "{{ 0x }}" if False else "{{ 12abc }}",
    "{{ dict(**{'a': 1}) }}", "{{ dict(*[[('a', 1)]]) }}", "{{ [1, 2, *nums] }}", "{{ range(*[1, 4])|list }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}{{ m(1, **{'b': 5}) }}",
    "{% set j = joiner('; ') %}{% for x in nums %}{{ j() }}{{ x }}{% endfor %}", "{% set j = joiner() %}{{ j() }}a{{ j() }}b", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    "{% set x = nums|map('string') %}{{ x|join }}|{{ x|join }}", "{% set x = d.items() %}{{ x|length }}{{ x|list|length }}{{ x|list|length }}", "{% set x = nums|select('odd') %}{% for y in x %}{{ y }}{% endfor %}{% for y in x %}{{ y }}{% else %}gone{% endfor %}",
    "{% set f = s.upper %}{{ f() }}", "{% set g = d.get %}{{ g('z') }}{{ g('q', 1) }}", "{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] %}{% set loop_messages = messages[1:] %}{% endif %}{% for m in loop_messages %}{{ loop.index0 % 2 == 0 }}{{ m['role'] == 'user' }};{% endfor %}{{ system_message }}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 1) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% endfor %}ok", "{% for m in messages[::-1] %}{% set index = (messages|length - 1) - loop.index0 %}{{ index }}{{ m.role }};{% endfor %}",
    "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S') }}|{{ strftime_now('%A %B %j %y %I %p %U %W %w %u %e %a') }}|{{ strftime_now('%-d %-m %%') }}", "{{ strftime_now('%D %F %T %R %C %G-%V %h %n%t|') }}", "{{ strftime_now('%c|%x|%X|%r') }}", "{{ strftime_now('%s')|length > 5 }}", "{{ strftime_now(5) }}", "{{ strftime_now('%n%%Q') }}",
    "{%- macro json_to_python_type(json_spec) -%}{%- set basic = {'string': 'str', 'integer': 'int'} %}{%- if basic[json_spec.type] is defined %}{{- basic[json_spec.type] }}{%- elif json_spec.type == 'array' %}{{- 'List[' + json_to_python_type(json_spec['items']) + ']' }}{%- elif json_spec.type is iterable and json_spec.type is not string %}{{- 'Union[' }}{%- for t in json_spec.type %}{{- json_to_python_type({'type': t}) }}{%- if not loop.last %}{{- ',' }}{%- endif %}{%- endfor %}{{- ']' }}{%- else %}{{- 'Any' }}{%- endif %}{%- endmacro %}{{ json_to_python_type({'type': 'array', 'items': {'type': ['string', 'integer', 'x']}}) }}",
    "{% block a %}x{% endblock %}" if False else "{% extends 'x' %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% trans %}x{% endtrans %}", "{% do nums.append(1) %}",
    "{{ messages[1].content|tojson }}{{ messages[2].content|trim|tojson }}", "a{{ n }}b{{ s }}c{{ empty }}d{{ missing }}e", "{{ [1, 2,] }}{{ {'a': 1,} }}{{ (1, 2,) }}", "{{ 'a'\n~\n'b' }}", "{{\n'a'\n}}", "{%\nif\ntrue\n%}x{%\nendif\n%}",
    "é{{ 'ü' }}中{# ß #}", "{% set é = 1 %}{{ é }}", "\u00a0{%- if true %}x{% endif -%}\u00a0y", "\u2003{{- 'x' -}}\u2003y", "  \u00a0{% if true %}x{% endif %}",
    "{% for i in range(3) %}{{ i }}{{ ', ' if not loop.last else '.' }}{% endfor %}", "{% for i in range(3) -%}\n  {{ i }}\n{%- endfor %}", "{% for i in range(3) %}\n  {{ i }}\n{% endfor %}", "{%- for i in range(2) %}\n  {%- if i %}\n    x\n  {%- else %}\n    y\n  {%- endif %}\n{%- endfor %}",
    "{% if 'tools' in nested %}a{% elif nested is mapping and 'a' in nested %}b{% endif %}", "{{ n if n is defined else 'x' }}{{ missing if missing is defined else 'x' }}", "{% set add = add if add is defined else false %}{{ add }}", "{% if not add is defined %}{% set add = false %}{% endif %}{{ add }}",
]
