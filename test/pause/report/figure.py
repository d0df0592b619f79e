"""A picture with a time axis and lanes, as shapes for the template.

Positions along the time axis are in percent of the width and all else in pixels, so that a narrow page has the same
letters and marks as a wide one.  What would cover something else gets a row of its own; whether it would is decided for
a narrow page.
"""
NARROW, WIDE = 540, 1060        # pixels, of the picture on a small and on a large page
BAR, LEASE, ROW = 18, 6, 19     # heights
LETTER = 6.3                    # mean width
ALARM_ROW = 34                  # of a mark that is louder than all others


def seconds(us):
    return f'{us / 1e6:.3f} s'


def rows_for(items, gap):
    """Rows so that no two of (x, width, thing) in one row come closer than gap, all in percent."""
    ends, placed = [], []
    for x, width, thing in sorted(items, key=lambda i: i[0]):
        row = next((r for r, end in enumerate(ends) if x >= end + gap), len(ends))
        ends[row:row + 1] = [x + width]
        placed.append((row, x, thing))
    return placed, len(ends)


class Figure:
    def __init__(self, title, t0, t1, zero):
        self.title, self.t0, self.t1, self.zero = title, t0, max(t1, t0 + 1), zero
        self.shapes, self.flags, self.front, self.bands = [], [], [], []
        self.top = self.height = 0

    def x(self, t):
        return round(100 * (min(max(t, self.t0), self.t1) - self.t0) / (self.t1 - self.t0), 3)

    def shows(self, start, end):
        return end >= self.t0 and start <= self.t1

    def at(self, t):
        return seconds(t - self.zero)

    def shape(self, tag, front=False, **fields):
        (self.front if front else self.shapes).append(dict(tag=tag, **fields))

    def rect(self, kind, start, end, y, height, tip='', labels=(), colour='', least=1, front=False, under=False):
        if self.shows(start, end):
            x, width = self.x(start), self.x(end) - self.x(start)
            self.shape('rect', front=front, kind=kind, x=x, width=max(width, 100 * least / WIDE), y=y, height=height,
                       tip=tip, colour=colour, under=under, wide=fitting(labels, width * WIDE / 100),
                       narrow=fitting(labels, width * NARROW / 100))

    def flag(self, kind, t, words):
        """A word above the lanes, with a line down through them."""
        if self.t0 <= t <= self.t1:
            self.flags.append((kind, t, words))

    def place_flags(self):
        """First of all: the lanes begin below them."""
        items = []
        for kind, t, words in self.flags:
            width = 100 * (LETTER * len(words) + 12) / NARROW
            left = self.x(t) + width > 100
            items.append((max(self.x(t) - width, 0) if left else self.x(t), width, (kind, t, words, left)))
        placed, rows = rows_for(items, 1)
        self.top = self.height = rows * 17 + 4
        for row, _, (kind, t, words, left) in placed:
            self.shape('flag', front=True, kind=kind, x=self.x(t), y=row * 17 + 13, words=words, left=left)

    def lane(self, name, bars, leases, marks, alarms, extra=()):
        """bars and leases: (level, arguments of rect); marks and alarms: (t, symbol, tip)."""
        y = self.height
        levels = 1 + max((level for level, _ in bars), default=0)
        body = levels * (BAR + LEASE + 4)
        placed, rows = rows_for([(self.x(t), 0, (symbol, tip)) for t, symbol, tip in marks], 100 * 15 / NARROW)
        loud, alarm_rows = rows_for([(self.x(t), 0, (symbol, tip)) for t, symbol, tip in alarms], 100 * 30 / NARROW)
        height = 18 + body + rows * ROW + alarm_rows * ALARM_ROW + 4
        self.shape('lane', y=y, height=height, name=name)
        for fields in extra:
            self.rect(y=y + 17, height=height - 19, **fields)
        for level, fields in leases:
            self.rect(y=y + 19 + level * (BAR + LEASE + 4) + BAR, height=LEASE, **fields)
        for level, fields in bars:
            self.rect(y=y + 18 + level * (BAR + LEASE + 4), height=BAR, **fields)
        for row, x, (symbol, tip) in placed:
            self.shape('mark', symbol=symbol, x=x, y=y + 18 + body + row * ROW + 9, tip=tip)
        for row, x, (symbol, tip) in loud:
            self.shape('mark', front=True, symbol=symbol, x=x, y=y + height - (row + .5) * ALARM_ROW - 2, tip=tip)
        self.height += height

    def chart(self, name, counts, scale, unit, kind, height=74):
        """Counts over time as an area, with a scale of its own."""
        top = max(counts) or 1
        most = f'at most {max(counts) * scale} {unit}' if any(counts) else 'none'
        points = ''.join(f'L{1000 * i / len(counts):.1f} {100 - 100 * c / top:.1f}H{1000 * (i + 1) / len(counts):.1f}'
                         for i, c in enumerate(counts))
        self.shape('lane', y=self.height, height=height + 26, name=f'{name}: {most}')
        self.shape('chart', kind=kind, y=self.height + 20, height=height, path=f'M0 100{points}V100Z',
                   scale=[(0, top * scale), (height / 2, f'{top * scale / 2:g}'), (height, 0)])
        self.height += height + 26

    def finish(self):
        """The axis; a line to its foot for each flag."""
        bottom = self.height
        for flag in self.front:
            if flag['tag'] == 'flag':
                self.shape('line', kind=flag['kind'], x=flag['x'], y=flag['y'] + 3, bottom=bottom)
        span = (self.t1 - self.t0) / 1e6
        step = next((s for s in (.1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200) if span / s <= 9), 500)
        k = int((self.t0 - self.zero) / 1e6 / step) - 1
        while self.zero + k * step * 1e6 <= self.t1:
            t = self.zero + k * step * 1e6
            if t >= self.t0:
                self.shapes.insert(0, dict(tag='tick', x=self.x(t), y=self.top, bottom=bottom, words=f'{k * step:g} s'))
            k += 1
        self.height = bottom + 20
        depth = {'lane': 0, 'tick': 1}
        self.shapes.sort(key=lambda s: depth.get(s['tag'], 2 if s.get('under') else 3))
        return self


def fitting(labels, width):
    """The longest of them that a bar of this width has space for."""
    return next((words for words in labels if LETTER * len(words) + 8 <= width), '')
