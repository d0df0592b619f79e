#!/usr/bin/python3 -B
"""The report of a run, as one HTML file that needs nothing else.

report.py DIR reads DIR/results.tsv, DIR/facts.tsv and the histories named there, and writes DIR/report.html.
"""
import os
import sys

import jinja2

import proofs
from story import Story

FIGURES = {'1': proofs.pause, '2': proofs.partition, '3': proofs.restore, '4': proofs.storm}
CASE = ('proof', 'case', 'expected', 'seen', 'verdict', 'history')


def figures_of(proof, history):
    return FIGURES.get(proof, proofs.turns if history == '5-turns' else proofs.pause)


def table(path, names):
    with open(path, encoding='utf-8') as lines:
        return [dict(zip(names, line.rstrip('\n').split('\t') + [''] * len(names))) for line in lines]


def draw(directory, case):
    path = os.path.join(directory, case['history'] + '.jsonl')
    case['figures'], case['faults'] = [], []
    if case['history'] and os.path.exists(path) and os.path.getsize(path) > 0:
        story = Story(path)
        case['figures'] = figures_of(case['proof'], case['history'])(story, case['case'])
        case['faults'] = [f for f in story.faults if any(p.shows(f.start, f.end) for p in case['figures'])]


def main(directory):
    cases = table(os.path.join(directory, 'results.tsv'), CASE)
    facts = {f['name']: f['value'] for f in table(os.path.join(directory, 'facts.tsv'), ('name', 'value'))}
    for case in cases:
        case['seen'], *case['wrong'] = case['seen'].split('; WRONG: ')
        case['control'] = case['case'].startswith('control')
        draw(directory, case)
    page = jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__))), autoescape=True,
                              trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    html = page.get_template('page.html').render(cases=cases, sabotage=facts.pop('sabotage', ''), facts=facts,
                                                 signs=proofs.SIGNS)
    with open(os.path.join(directory, 'report.html'), 'w', encoding='utf-8') as out:
        out.write(html)


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
