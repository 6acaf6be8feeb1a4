# SPDX-License-Identifier: Zlib
"""Finds where a single fault can be planted in C++ source: by tokens, not by lines.

Knows comments, strings, preprocessor lines and nested braces, but no types. Some supposed faults
therefore do not compile, and the caller draws another. Relies on the format of .clang-format:
binary operators stand between spaces, angle brackets of templates do not."""
import dataclasses
import re

TOKEN = re.compile(r'''
    (?P<skip>//[^\n]*|/\*.*?\*/|\s+|^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<text>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|<=>|\.\.\.|->\*?|::|\+\+|--|&&|\|\||<<|>>|[-+*/%&|^=!<>]=|.)
''', re.X | re.S | re.M)

COMPARISONS = {'<': ['<=', '>'], '<=': ['<', '>='], '>': ['>=', '<'], '>=': ['>', '<='],
               '==': ['!='], '!=': ['==']}
ARITHMETIC = {'+': '-', '-': '+', '*': '/', '/': '*', '%': '/', '+=': '-=', '-=': '+=', '*=': '/='}
BITS = {'&': '|', '|': '&', '<<': '>>', '>>': '<<', '&=': '|=', '|=': '&=', '^': '|', '^=': '|='}
LOGIC = {'&&': '||', '||': '&&'}
WORDS = {'true': 'false', 'false': 'true'}
EXTREMES = {'min': 'max', 'max': 'min', 'btMin': 'btMax', 'btMax': 'btMin', 'setMin': 'setMax',
            'setMax': 'setMin'}
JUMPS = {'return', 'break', 'continue', 'throw'}
NO_EXPRESSIONS = {'if', 'for', 'while', 'do', 'switch', 'case', 'default', 'using', 'static_assert',
                  'static', 'const', 'constexpr', 'auto', 'typedef', 'struct', 'class', 'enum',
                  'template', 'else', 'goto', 'try', 'catch', 'friend', 'public', 'private'}
BEFORE_CODE = {')', 'const', 'noexcept', 'override', 'final', 'mutable', 'else', 'do', 'try'}
BEFORE_LAMBDA = {'(', ',', '=', 'return', '{'}
HEADS = {'if', 'for', 'while', 'switch', 'catch'}


@dataclasses.dataclass(frozen=True)
class Mutation:
    """A replacement of [begin, end) in a source."""
    file: str
    operator: str
    begin: int
    end: int
    replacement: str
    line: int
    change: str  # one line, for people and for finding the same fault again

    def applied(self, source):
        return source[:self.begin] + self.replacement + source[self.end:]


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    begin: int
    spaced: bool = False  # stands between spaces

    @property
    def end(self):
        return self.begin + len(self.text)


def tokenize(source):
    tokens = []
    for match in TOKEN.finditer(source):
        if match.lastgroup != 'skip':
            token = Token(match.lastgroup, match.group(), match.start())
            token.spaced = (source[token.begin - 1].isspace() and source[token.end:][:1].isspace())
            tokens.append(token)
    return tokens


def numbers_off_by_one(text):
    """Replacements of a literal. None for literals that are more than digits and a suffix."""
    match = re.fullmatch(r"(0x[\da-fA-F']+|[\d']+|[\d.]+)([a-zA-Z]*)", text)
    if not match:
        return []
    digits, suffix = match.groups()
    if digits.startswith('0x'):
        value = int(digits.replace("'", ''), 16)
        return [hex(value + 1) + suffix, hex(max(value - 1, 0)) + suffix]
    if '.' in digits or suffix in ('f', 'F'):
        return [repr(float(digits) + 1) + suffix]
    value = int(digits.replace("'", ''))
    return [f'{value + 1}{suffix}'] + ([f'{value - 1}{suffix}'] if value > 0 else [])


class Finder:
    def __init__(self, file, source):
        self.file, self.source = file, source
        self.tokens = tokenize(source)
        self.found = []
        self.partner = self.match_brackets()

    def match_brackets(self):
        partner, open_ = {}, []
        for i, token in enumerate(self.tokens):
            if token.text in '([{' and token.kind == 'sign':
                open_.append(i)
            elif token.text in ')]}' and token.kind == 'sign' and open_:
                partner[i] = open_.pop()
                partner[partner[i]] = i
        return partner

    def add(self, operator, begin, end, replacement):
        line = self.source.count('\n', 0, begin) + 1
        first = self.source.rfind('\n', 0, begin) + 1
        last = self.source.find('\n', end)
        before = self.source[first:last]
        after = self.source[first:begin] + replacement + self.source[end:last]
        change = ' -> '.join(' '.join(re.sub(r'//.*', '', text).split())
                             for text in (before, after))
        self.found.append(Mutation(self.file, operator, begin, end, replacement, line, change))

    def swap(self, operator, token, replacement):
        self.add(operator, token.begin, token.end, replacement)

    def text(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ''

    def find(self):
        for i, token in enumerate(self.tokens):
            if self.text(i - 1) == 'template' or self.text(i - 1) == 'operator':
                continue
            self.find_sign(token)
            self.find_word(i, token)
        self.find_statements()
        return self.found

    def find_sign(self, token):
        text = token.text
        if token.kind == 'number':
            for other in numbers_off_by_one(text):
                self.swap('constant off by one', token, other)
        if token.kind != 'sign':
            return
        if text in ('++', '--'):
            self.swap('arithmetic exchanged', token, '--' if text == '++' else '++')
        if text == '!':
            self.swap('negation dropped', token, '')
        if not token.spaced:
            return
        for other in COMPARISONS.get(text, []):
            self.swap('comparison turned', token, other)
        for operator, table in (('arithmetic exchanged', ARITHMETIC), ('bits exchanged', BITS),
                                ('and/or exchanged', LOGIC)):
            if text in table:
                self.swap(operator, token, table[text])

    def find_word(self, i, token):
        if token.kind != 'word':
            return
        if token.text in WORDS:
            self.swap('true/false exchanged', token, WORDS[token.text])
        if token.text in EXTREMES and self.text(i + 1) in ('(', '<'):
            self.swap('min/max exchanged', token, EXTREMES[token.text])
        if token.text in ('if', 'while') and self.text(i + 1) == '(':
            self.negate(i + 1)

    def negate(self, open_):
        """Negates the condition in brackets, but not a declaration in front of it."""
        inner = range(open_ + 1, self.partner[open_])
        ends = [i for i in inner if self.text(i) == ';']
        begin = self.tokens[(ends[-1] if ends else open_) + 1].begin
        end = self.tokens[inner[-1]].end
        if not any(self.text(i) == '=' for i in inner if not ends or i > ends[-1]):
            self.add('condition negated', begin, end, f'!({self.source[begin:end]})')

    def is_code(self, i):
        """Whether the brace at i opens statements rather than a list of members or values."""
        before = self.text(i - 1)
        if before in BEFORE_CODE:
            return True
        if before == ']' and self.text(self.partner.get(i - 1, 0) - 1) in BEFORE_LAMBDA:
            return True  # a lambda without parameters
        while i > 0 and self.text(i - 1) not in {';', '{', '}', ')'}:
            i -= 1
            if self.text(i) in {'namespace', 'class', 'struct', 'union', 'enum', '='}:
                return False
        return self.text(i - 1) in {';', '{', '}'} and self.tokens[i].text == '{'

    def find_statements(self):
        """Finds the statements of code blocks. Each begins after the previous one ends."""
        open_ = []  # [is code, start of its statement, is controlled by a head]
        for i, token in enumerate(self.tokens):
            if token.kind == 'sign' and token.text in '([{':
                code = token.text == '{' and self.is_code(i)
                open_.append([code, i + 1, False])
            elif token.kind == 'sign' and token.text in ')]}' and open_:
                open_.pop()
                if not open_ or not open_[-1][0]:
                    continue
                head = self.text(self.partner[i] - 1)
                if token.text == '}' and self.is_code(self.partner[i]):
                    open_[-1][1:] = [i + 1, False]
                elif token.text == ')' and (head in HEADS or head == 'constexpr'):
                    open_[-1][1:] = [i + 1, True]
            elif open_ and open_[-1][0]:
                if token.text in ('else', 'do'):
                    open_[-1][1:] = [i + 1, True]
                elif token.text == ';':
                    self.find_statement(*open_[-1][1:], i)
                    open_[-1][1:] = [i + 1, False]

    def find_statement(self, start, controlled, end):
        first = self.text(start)
        begin, stop = self.tokens[start].begin, self.tokens[end].begin
        if first in JUMPS:
            if controlled or first != 'return' or self.text(end + 1) != '}':
                self.add('early way out removed', begin, stop, '')
        elif start < end and first not in NO_EXPRESSIONS and not self.is_declaration(start, end):
            self.add('statement left out', begin, stop, '(void)0')

    def is_declaration(self, i, end):
        """Whether a type and a name follow, with nothing but the type's own signs between them."""
        while i + 1 < end and self.text(i + 1) == '::':
            i += 2
        if self.tokens[i].kind != 'word':
            return False
        after = self.tokens[i + 1]
        return after.kind == 'word' or after.text == '<' and not after.spaced or (
            after.text in '*&' and not after.spaced)


def mutations_of(file, source):
    return Finder(file, source).find()
