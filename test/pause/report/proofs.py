"""The pictures of each proof."""
from figure import Figure, rows_for
from story import token_words

SECOND = 1_000_000
COLOURS = ['#2f6fb0', '#d98e1f', '#4f9a68', '#8560b5', '#2f9ea6', '#9b6b4a', '#6b7785', '#c06ba0']

SIGNS = {
    'stale': 'stale write ACCEPTED', 'accepted': 'write accepted', 'refused': 'write refused as stale (LF001)',
    'kept-out': 'write kept out by the validator (LF007, LF008)', 'present': 'token presented',
    'fence': 'the holder was told to stop (onFence)', 'ended': 'found its transaction ended by the fence',
    'denied': 'not granted: the service is sealed', 'unanswered': 'grant that etcd did not answer',
    'found': 'unanswered grant, found done',
}


def tip_of(figure, mark):
    words = f'{mark.who}, {figure.at(mark.t)}: {SIGNS[mark.kind]}'
    words += f', {token_words(mark.token)}' if mark.token else ''
    return words + (f', {mark.code}' if mark.code not in ('', '00000') else '')


def hold_bar(figure, hold, colour, digits=None):
    words = token_words(hold.token)
    short = f'{hold.token >> 48}/{hold.token & (1 << 48) - 1}'
    labels = [digits] if digits is not None else [f'holds the lock: {words}', f'holds: {words}', f'holds {short}', 'holds']
    tip = (f'{hold.who} holds {hold.lock} from {figure.at(hold.start)} to {figure.at(hold.end)}, {words}; {hold.how}')
    return dict(kind='hold', start=hold.start, end=hold.end, colour=colour, labels=labels, tip=tip)


def lease_bar(figure, hold):
    """As long as the lease says; where the hold ended before it, the lease goes on for other locks."""
    return dict(kind='lease', start=hold.start, end=hold.end,
                tip=f'its lease, renewed {len(hold.renewals)} times' if hold.renewals else 'its lease')


def split_marks(figure, marks):
    shown = [m for m in marks if figure.t0 <= m.t <= figure.t1]
    return ([(m.t, m.kind, tip_of(figure, m)) for m in shown if m.kind != 'stale'],
            [(m.t, m.kind, tip_of(figure, m)) for m in shown if m.kind == 'stale'])


def flag_faults(figure, story):
    """Each fault that is seen here, by its name; one that repeats itself, once."""
    said = set()
    for fault in story.faults:
        words = {'stale': 'STALE WRITE ACCEPTED', 'validator': 'LET THROUGH BY THE VALIDATOR', 'overlap': 'TWO HOLDERS',
                 'sealed': 'GRANTED WHILE SEALED', 'token': 'TOKEN NOT ABOVE THE LAST'}[fault.kind]
        if figure.shows(fault.start, fault.end) and words not in said:
            figure.flag('alarm', max(fault.start, figure.t0), words)
            said.add(words)


# ---- a pause: one lane per client ----------------------------------------------------------------

def pause(story, title):
    stop = next(iter(story.of('stop')), None)
    zero = stop.start if stop else story.first
    figure = Figure(title, zero - 2 * SECOND, story.last + SECOND // 2, zero)
    figure.caption = '0 s is when the holder is stopped (hatched: it does not run).'
    if stop:
        figure.flag('event', stop.start, 'holder stopped')
        figure.flag('event', stop.end, 'continued')
    flag_faults(figure, story)
    figure.place_flags()
    top = figure.height
    for number, who in enumerate(('holder', 'successor')):
        pause_lane(figure, story, who, COLOURS[(0, 2)[number]])
    for fault in story.faults:
        if fault.kind == 'overlap':
            figure.rect('overlap', fault.start, fault.end, top, figure.height - top, tip=fault.words, under=True)
    return [figure.finish()]


def pause_lane(figure, story, who, colour):
    bars, leases = [], []
    for hold in (h for h in story.holds if h.who == who):
        bars.append((0, hold_bar(figure, hold, colour)))
        leases.append((0, lease_bar(figure, hold)))
        leases += [(0, dict(kind='renewal', start=t, end=t, least=2, tip=f'renewed at {figure.at(t)}'))
                   for t in hold.renewals]
        if hold.end < hold.knows < float('inf'):
            bars.append((0, dict(kind='belief', start=hold.end, end=hold.knows,
                                 labels=['believes that it still holds the lock', 'believes that it holds', 'believes'],
                                 tip='its lease is over as far as is recorded; it cannot know that')))
    stops = [dict(kind='stopped', start=s.start, end=s.end, tip=f'stopped for {figure.at(figure.zero + s.end - s.start)}')
             for s in story.of('stop') if s.who == who]
    marks, alarms = split_marks(figure, [m for m in story.marks if m.who == who])
    figure.lane(who, bars, leases, marks, alarms, stops)


# ---- locks that many clients take in turn: one lane per lock ----------------------------------------

def clients_of(story):
    names = sorted({h.who for h in story.holds}, key=lambda n: (len(n), n))
    return {name: (COLOURS[i % len(COLOURS)], str(i + 1)) for i, name in enumerate(names)}


def lock_lanes(figure, story, clients, marks, locks=None, more={}, leased=False):
    for lock in locks or sorted({h.lock for h in story.holds}):
        holds = [h for h in story.holds if h.lock == lock and figure.shows(h.start, h.end)]
        placed, _ = rows_for([(figure.x(h.start), figure.x(h.end) - figure.x(h.start), h) for h in holds], -1e-6)
        bars, leases = [], []
        for level, _, hold in placed:
            level = min(level, 3)
            colour, digits = clients[hold.who]
            bars.append((level, hold_bar(figure, hold, colour, digits)))
            leases += [(level, lease_bar(figure, hold))] if leased else []
        bars += [(0, dict(kind='overlap', start=f.start, end=f.end, least=2, tip=f.words, front=True))
                 for f in story.faults if f.kind == 'overlap' and f.lock == lock]
        quiet, alarms = split_marks(figure, [m for m in story.marks if m.lock == lock and m.kind in marks])
        leases += [(0, dict(kind='write', start=m.t, end=m.t, least=2, tip=tip_of(figure, m))) for m in story.marks
                 if m.lock == lock and m.kind == 'accepted' and 'ticks' in marks and figure.t0 <= m.t <= figure.t1]
        figure.lane(lock, more.get(lock, []) + bars, leases, quiet, alarms)


def whole_run(story, title, clients, caption):
    figure = Figure(title, story.first, story.last, story.first)
    figure.caption, figure.clients = caption, clients
    show_cuts(figure, story)
    figure.place_flags()
    cut_bands(figure, story)
    lock_lanes(figure, story, clients, {'stale', 'refused'})
    return figure.finish()


def show_cuts(figure, story):
    for number, cut in enumerate(story.of('cut')):
        figure.flag('event', cut.start, f'cut {number + 1}')
    flag_faults(figure, story)


def cut_bands(figure, story):
    figure.bands = [(kind, s) for kind in ('mute', 'cut') for s in story.of(kind) if figure.shows(s.start, s.end)]


def close_up(story, title, clients, t0, t1, zero, caption):
    figure = Figure(title, t0, t1, zero)
    figure.caption = caption
    for s in story.of('mute'):
        figure.flag('event', s.start, "leader's answers dropped")
    for s in story.of('cut'):
        figure.flag('event', s.start, 'leader cut off')
    flag_faults(figure, story)
    figure.place_flags()
    cut_bands(figure, story)
    lock_lanes(figure, story, clients, {'stale', 'refused', 'unanswered', 'found', 'ticks'})
    return figure.finish()


def partition(story, title):
    clients = clients_of(story)
    figures = [whole_run(story, title, clients, '0 s is when the first client starts. Each lane is a lock, and each bar '
                         'a hold, in the colour of its client; grey: the leader cannot be reached.')]
    mutes = story.of('mute')
    for number, cut in enumerate(story.of('cut')):
        mute = max((m.start for m in mutes if m.start <= cut.start), default=cut.start)
        figures.append(close_up(story, f'cut {number + 1}', clients, mute - SECOND // 4, cut.start + 3 * SECOND // 2, mute,
                                f"Cut {number + 1} from close by. 0 s is when the leader's answers are dropped. A number is "
                                "its client's; a green line is a write that was accepted."))
    return figures + first_fault(story, clients)


def first_fault(story, clients):
    if not story.faults:
        return []
    t = story.faults[0].start
    return [close_up(story, 'the first fault', clients, t - SECOND // 4, t + SECOND // 4, t,
                     'The worst fault from close by, at 0 s.')]


def turns(story, title):
    clients = clients_of(story)
    return [whole_run(story, title, clients, '0 s is when the first client starts. Each bar is a hold, in the colour of '
                      'its client.')] + first_fault(story, clients)


# ---- disasters -------------------------------------------------------------------------------------

def restore(story, title):
    return [disaster(story, sealed) for sealed in story.of('sealed') if sealed.why == title]


def disaster(story, sealed):
    settled = min((t for what, t in story.moments if what == 'settled' and t > sealed.start), default=story.last)
    figure = Figure(sealed.why, sealed.start - SECOND, settled, sealed.start)
    figure.caption = '0 s is when the cluster is destroyed; yellow: the lock service must serve nothing.'
    restored = min((t for what, t in story.moments if what == 'restore' and t > sealed.start), default=sealed.end)
    figure.flag('event', sealed.start, 'cluster destroyed')
    figure.flag('event', restored, 'snapshot restored')
    figure.flag('event', sealed.end, 'epoch advanced')
    flag_faults(figure, story)
    figure.place_flags()
    figure.bands = [('sealed', sealed)]
    revived = story.alive_at(story.snapshots.get(sealed.snapshot, -1))
    locks = {h.lock for h in story.holds if figure.shows(h.start, h.end)} | {h.lock for h in revived}
    locks |= {m.lock for m in story.marks if m.lock and figure.t0 <= m.t <= figure.t1}
    more = {h.lock: [(0, dict(kind='revived', start=restored, end=sealed.end, labels=['held again', 'again'],
                              tip=f'held again in the snapshot: by {token_words(h.token)}, which had ended'))]
            for h in revived}
    lock_lanes(figure, story, {'a': (COLOURS[0], None)}, set(SIGNS), sorted(locks), more, leased=True)
    return figure.finish()


# ---- a storm: too many clients for lanes, so counts over time ---------------------------------------

STEP = SECOND // 4


def storm(story, title):
    killed = next((t for what, t in story.moments if what == 'kill'), story.first)
    figure = Figure(title, story.first, story.last + SECOND, killed)
    figure.caption = '0 s is when all clients are killed and started again.'
    figure.flag('event', killed, 'all killed and started again')
    flag_faults(figure, story)
    figure.place_flags()
    n = (story.last + SECOND - story.first) // STEP
    figure.chart('clients that hold their lock', holding(story, killed, n), 1, 'clients', 'holding')
    figure.chart('renewals answered', tally(story, 'renew', n), SECOND // STEP, 'per second', 'renewed')
    figure.chart('acquires and sessions turned away', tally(story, 'shed', n, lambda e: e['path'] != '/v1/renew'),
                 SECOND // STEP, 'per second', 'turned')
    figure.chart('renewals turned away, of which there must be none', tally(story, 'shed', n, lambda e: e['path'] == '/v1/renew'),
                 SECOND // STEP, 'per second', 'fault')
    quiet, alarms = split_marks(figure, [m for m in story.marks if m.who.startswith('delayed')])
    figure.lane('a delayed write, under a token of before', [], [], quiet, alarms)
    return [figure.finish()]


def tally(story, what, n, which=lambda e: True):
    counts = [0] * n
    for e in story.events:
        if e['what'] == what and which(e):
            counts[(e['t'] - story.first) // STEP] += 1
    return counts


def holding(story, killed, n):
    """A kill leaves no holder; a client that is fenced before it was granted any lock held none."""
    counts, now = [0] * n, set()
    events = [(e['t'], e['what'], e['who']) for e in story.events if e['what'] in ('acquire', 'fence') and e['phase'] == 'ok']
    at = 0
    for t, what, who in sorted(events + [(killed, 'kill', '')]) + [(story.last + STEP, '', '')]:
        while at < n and story.first + at * STEP < t:
            counts[at] = len(now)
            at += 1
        now = set() if what == 'kill' else now | {who} if what == 'acquire' else now - {who}
    return counts
