"""A recorded history as what a picture shows: who held what and how long, what became of the writes, and every fault.

A fault is found here by its own means, and more simply than by the checker, who decides: it is drawn only where the
times recorded leave no doubt.
"""
import json
from dataclasses import dataclass, field

NEVER = float('inf')


@dataclass
class Hold:
    who: str
    lock: str
    token: int
    session: str
    asked: int
    start: int
    end: float = NEVER          # released, dropped, lost with the cluster, or when its lease ran out
    how: str = 'to the end of the record'
    lease: float = NEVER        # the lease cannot end by itself before this
    renewals: list = field(default_factory=list)
    knows: float = NEVER        # when a client that lost its lock learned of it


@dataclass
class Mark:
    kind: str
    t: int
    who: str = ''
    lock: str = ''
    token: int = 0
    code: str = ''


@dataclass
class Span:
    what: str
    start: int
    end: float = NEVER
    who: str = ''
    why: str = ''
    snapshot: str = ''


@dataclass
class Fault:
    kind: str                   # stale, validator, overlap, sealed, token
    words: str
    start: int
    end: int
    lock: str
    who: str = ''


def token_words(token):
    return f'epoch {token >> 48}, revision {token & (1 << 48) - 1}'


class Story:
    def __init__(self, path):
        with open(path, encoding='utf-8') as lines:
            self.events = sorted((json.loads(line) for line in lines), key=lambda e: e['t'])
        self.holds, self.marks, self.spans, self.faults = [], [], [], []
        self.moments, self.snapshots, self.leases, self.ttls, self.calls = [], {}, {}, {}, {}
        self.by_token, self.top, self.granted = {}, {}, {}
        for event in self.events:
            self.read(event)
        self.first, self.last = self.events[0]['t'], self.events[-1]['t']
        for span in self.spans:
            span.end = min(span.end, self.last)
        self.end_holds()
        self.find_overlaps()
        self.find_uncounted()
        self.find_let_through()
        self.faults.sort(key=lambda f: (('stale', 'validator', 'overlap', 'sealed', 'token').index(f.kind), f.start))

    def of(self, what):
        return [s for s in self.spans if s.what == what]

    # ---- events ------------------------------------------------------------------------------

    def read(self, e):
        what, phase = e['what'], e['phase']
        if phase == 'call' and 'id' in e:
            lock = e.get('lock')
            self.calls[e['id']] = (e['t'], self.top.get(lock, 0), self.granted.get(lock, 0))
        reader = getattr(self, 'read_' + what, None)
        if reader:
            reader(e, phase)

    def read_session(self, e, phase):
        self.leases.setdefault(e['session'], []).append((e['t'], e['sent'] + e['ttl']))
        self.ttls[e['session']] = e['ttl']

    read_renew = read_session

    def read_acquire(self, e, phase):
        if phase == 'ok':
            hold = Hold(e['who'], e['lock'], int(e['token']), e.get('session', ''), self.calls[e['id']][0], e['t'])
            self.check_token(hold, self.calls[e['id']][2])
            self.holds.append(hold)
            self.by_token[e['lock'], hold.token] = hold
        elif phase == 'no' and e.get('code') == 'sealed':
            self.mark('denied', e)

    def check_token(self, hold, last):
        self.granted[hold.lock] = max(self.granted.get(hold.lock, 0), hold.token)
        if hold.token <= last:
            self.fault('token', f'{hold.who} was granted {hold.lock} with a token ({token_words(hold.token)}) that is not '
                       f'above the last one ({token_words(last)})', hold.start, hold.start, hold.lock, hold.who)
        if any(s.end == NEVER for s in self.of('sealed')):
            self.fault('sealed', f'{hold.lock} was granted from the restored snapshot, before the epoch had advanced',
                       hold.start, hold.start, hold.lock, hold.who)

    def read_release(self, e, phase):
        hold = self.by_token.get((e['lock'], int(e['token'])))
        if hold and phase == 'call':
            self.end(hold, e['t'], 'released')

    def read_drop(self, e, phase):
        for hold in self.holds:
            if phase == 'call':
                self.end(hold, e['t'], 'dropped by the operator')

    def read_write(self, e, phase):
        if phase == 'call':
            return
        token, lock = int(e['token']), e['lock']
        if phase == 'ok' and token < self.calls[e['id']][1]:
            self.accept_stale(e)
        elif phase == 'ok':
            self.mark('accepted', e)
        elif phase == 'no':
            self.mark({'LF001': 'refused', 'LF007': 'kept-out', 'LF008': 'kept-out'}.get(e.get('code'), 'ended'), e)
        if phase == 'ok':
            self.top[lock] = max(self.top.get(lock, 0), token)

    def accept_stale(self, e):
        self.mark_stale(e)
        self.fault('stale', f"a stale write of {e['who']} was ACCEPTED: {token_words(int(e['token']))}, although "
                   f"{token_words(self.calls[e['id']][1])} had been accepted before", e['t'], e['t'], e['lock'], e['who'])

    def read_present(self, e, phase):
        if phase == 'ok':
            self.top[e['lock']] = max(self.top.get(e['lock'], 0), int(e['token']))
            self.mark('present', e)

    def read_fence(self, e, phase):
        for hold in reversed(self.holds):
            if hold.who == e['who']:
                hold.knows = min(hold.knows, e['t'])
                break
        self.mark('fence', e)

    def read_unanswered(self, e, phase):
        self.mark('unanswered', e)

    def read_found(self, e, phase):
        self.mark('found', e)

    def read_stop(self, e, phase):
        self.spans.append(Span('stop', e['t'], who=e['who']))

    def read_continue(self, e, phase):
        self.close('stop', e, lambda s: s.who == e['who'])

    def read_mute(self, e, phase):
        self.spans.append(Span('mute', e['t']))

    def read_unmute(self, e, phase):
        self.close('mute', e)

    def read_cut(self, e, phase):
        self.close('mute', e)
        self.spans.append(Span('cut', e['t']))

    def read_heal(self, e, phase):
        self.close('cut', e)

    def read_snapshot(self, e, phase):
        self.snapshots[e['snapshot']] = e['t']

    def read_destroy(self, e, phase):
        self.spans.append(Span('sealed', e['t'], why=e['why'], snapshot=e.get('snapshot', '')))
        for hold in self.holds:
            self.end(hold, e['t'], 'lost with the cluster')

    def read_restore(self, e, phase):
        self.moments.append(('restore', e['t']))

    def read_epoch(self, e, phase):
        self.close('sealed', e)
        self.moments.append(('epoch', e['t']))

    def read_settled(self, e, phase):
        self.moments.append(('settled', e['t']))

    def read_kill(self, e, phase):
        self.moments.append(('kill', e['t']))

    def close(self, what, e, which=lambda s: True):
        for span in self.spans:
            if span.what == what and span.end == NEVER and which(span):
                span.end = e['t']

    def mark(self, kind, e):
        self.marks.append(Mark(kind, e['t'], e['who'], e.get('lock', ''), int(e.get('token', 0)), e.get('code', '')))

    def mark_stale(self, e):
        self.marks = [m for m in self.marks if (m.kind, m.t, m.who) != ('accepted', e['t'], e['who'])]
        self.mark('stale', e)

    def fault(self, *fields):
        self.faults.append(Fault(*fields))

    # ---- holds -------------------------------------------------------------------------------

    def end(self, hold, t, how):
        if hold.end == NEVER:
            hold.end, hold.how = t, how

    def end_holds(self):
        for hold in self.holds:
            lease = self.leases.get(hold.session, [])
            hold.lease = max((until for _, until in lease), default=NEVER)
            if hold.session.startswith('/other/'):
                self.bound_unrecorded(hold)
            elif hold.lease < hold.end:
                hold.end, hold.how = hold.lease, 'until its lease ran out'
            hold.renewals = [t for t, _ in lease if hold.start < t <= hold.end]
            if hold.how.startswith('until its lease') and hold.knows == NEVER:
                hold.knows = max((m.t for m in self.marks if m.who == hold.who and m.token == hold.token), default=NEVER)
            hold.end = min(hold.end, self.last)

    def bound_unrecorded(self, hold):
        """The renewals of etcdctl are not recorded, but a stopped process sends none; and the next grant may show that there were
        none after the grant."""
        following = min((h.start for h in self.holds if h.lock == hold.lock and h.start >= hold.lease), default=NEVER)
        for stop in self.of('stop'):
            until = min(stop.start + self.ttls[hold.session], following)
            if stop.who == hold.who and until < hold.end:
                hold.end, hold.how = until, 'until its lease ran out, at the latest'

    def alive_at(self, t):
        return [h for h in self.holds if h.start <= t < h.end]

    def find_overlaps(self):
        running = {}
        for hold in sorted(self.holds, key=lambda h: h.start):
            others = [h for h in running.get(hold.lock, []) if min(h.end, h.lease) > hold.start]
            for other in others:
                end = min(other.end, other.lease, hold.end)
                self.fault('overlap', f'{other.who} and {hold.who} held {hold.lock} at once for '
                           f'{(end - hold.start) / 1e6:.3f} s', hold.start, end, hold.lock, hold.who)
            running[hold.lock] = others + [hold]

    def find_uncounted(self):
        """Stale by the row's own order, where the times alone would allow another."""
        found = {(m.lock, m.t) for m in self.marks if m.kind == 'stale'}
        writes = [e for e in self.events if e['what'] == 'write' and e['phase'] == 'ok' and e.get('n', -1) > 0]
        top = {}
        for e in sorted(writes, key=lambda e: e['n']):
            if int(e['token']) < top.get(e['lock'], 0) and (e['lock'], e['t']) not in found:
                self.calls[e['id']] = (0, top[e['lock']])
                self.accept_stale(e)
            top[e['lock']] = max(top.get(e['lock'], 0), int(e['token']))

    def find_let_through(self):
        for e in self.events:
            if e['what'] != 'write' or e['phase'] != 'ok' or not e.get('validated'):
                continue
            hold = self.by_token.get((e['lock'], int(e['token'])))
            if not hold or hold.end < self.calls[e['id']][0]:
                self.mark_stale(e)
                self.fault('validator', f"the validator let a write to {e['lock']} through, although its hold was over",
                           e['t'], e['t'], e['lock'], e['who'])
