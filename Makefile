# lockfence: a PGXS extension.  `make`, `make install`, `make installcheck`.
# `scripts/test` runs every test without installing it; `make memcheck` and `make matrix` are the slower ones.
# lockfence_pgtap is SQL alone, and for tests.
EXTENSION = lockfence lockfence_pgtap
MODULE_big = lockfence

HERE := $(dir $(lastword $(MAKEFILE_LIST)))

# The control file is the one place that names the version.
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(HERE)lockfence.control)

# In sql/, a name with "--" is a script of the extension, and any other one is a test.
SQL := $(sort $(patsubst $(HERE)%,%,$(wildcard $(HERE)sql/*.sql)))
DATA = $(foreach f,$(SQL),$(if $(findstring --,$(f)),$(f)))
OBJS = $(patsubst %,src/%.o, \
	lockfence token state mark holder fence contend preempt guard trigarg template guarded jsonvalue refuse admin rows stats refusals shmem cache)

PG_CPPFLAGS = -DLOCKFENCE_VERSION='"$(EXTVERSION)"'

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)

REGRESS = $(patsubst sql/%.sql,%,$(filter-out $(DATA),$(SQL)))
REGRESS_OPTS = --load-extension=lockfence --encoding=UTF8 --no-locale

# PostgreSQL 13 does not install pg_isolation_regress.
ifneq ($(wildcard $(dir $(PGXS))../test/isolation/pg_isolation_regress),)
ISOLATION = $(sort $(basename $(notdir $(wildcard $(HERE)test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=$(srcdir)/test/isolation --load-extension=lockfence --encoding=UTF8 --no-locale
endif

include $(PGXS)

# An out-of-tree build has no src/ to put objects in.
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(HERE)src/*.h) | $(CURDIR)/src
$(CURDIR)/src:
	mkdir -p $@

matrix memcheck:
	$(HERE)test/$@/run

# The proofs against a real etcd quorum: docs/pause-kit.md.  SCALE=dev takes three minutes.
pause:
	$(HERE)scripts/pause --scale $(or $(SCALE),full)

# What the fence costs: docs/performance.md.  QUICK=1 takes about five minutes.
bench:
	$(HERE)bench/run $(if $(QUICK),--quick)

.PHONY: matrix memcheck pause bench
