# lockfence: a PGXS extension.  `make`, `make install`, `make installcheck`.
# `scripts/test` runs every test without installing it; `make memcheck`, `make fuzz`, `make soak` and `make matrix` are the slower ones.
# `make validate install-validate` builds lockfence_validate too, which takes libcurl and jansson; `make run install-run`
# builds the program lockfence-run, which takes libpq.
# lockfence_pgtap is SQL alone, and for tests; lockfence_lease is SQL, and has its C in the library of the core.
EXTENSION = lockfence lockfence_pgtap lockfence_lease
MODULE_big = lockfence

HERE := $(dir $(lastword $(MAKEFILE_LIST)))

# The control file is the one place that names the version.
version_of = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(HERE)$(1).control)
EXTVERSION := $(call version_of,lockfence)

# In sql/, NAME.in lists the parts that a script of the extension is joined from, and a name with "--" is a script
# as it is.  That of lockfence_validate is src/validate/Makefile's, and is tested where it has been built.
VALIDATE := $(wildcard $(CURDIR)/lockfence_validate.so)
DATA = $(filter-out sql/lockfence_validate--%,$(patsubst $(HERE)%,%,$(wildcard $(HERE)sql/*--*.sql)))
LEASE = lockfence_lease--$(call version_of,lockfence_lease).sql
DATA_built = lockfence--$(EXTVERSION).sql $(LEASE) $(patsubst $(HERE)sql/%.in,%.sql,$(wildcard $(HERE)sql/lockfence--*.in))
EXTRA_CLEAN = output_regress output_lease
OBJS = $(patsubst $(HERE)%.c,%.o,$(sort $(wildcard $(HERE)src/*.c))) $(MORE_OBJS)

# Sessions that share memory must agree on all that it means, which may change with any line of the sources.
SOURCES := $(sort $(wildcard $(HERE)src/*.[ch] $(HERE)src/*.def))
LAYOUT := $(EXTVERSION) $(shell cat $(SOURCES) | cksum | cut -d ' ' -f 1)
PG_CPPFLAGS = -DLOCKFENCE_LAYOUT='"$(LAYOUT)"'

# installcheck is kept away from what is not its own, as the server may be in use: it has databases of its own, which it
# drops, and counts nothing, or its tables and refusals would take the place of others' in the statistics of the server.
# TRACK=on has it count, as tests in a private server do; those of the statistics do so anyway.
USE_MODULE_DB = yes
TRACK ?= off

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)

REGRESS = $(sort $(filter-out $(if $(VALIDATE),,validate_%),$(basename $(notdir $(wildcard $(HERE)test/sql/*.sql)))))
REGRESS_OPTS = --inputdir=$(srcdir)/test --outputdir=output_regress --load-extension=lockfence --encoding=UTF8 --no-locale

# PostgreSQL 13 does not install pg_isolation_regress.
ifneq ($(wildcard $(dir $(PGXS))../test/isolation/pg_isolation_regress),)
ISOLATION = $(sort $(basename $(notdir $(wildcard $(HERE)test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=$(srcdir)/test/isolation --load-extension=lockfence --encoding=UTF8 --no-locale
endif

# Those of lockfence_lease, which the others do without.
LEASE_REGRESS = $(sort $(basename $(notdir $(wildcard $(HERE)test/lease/sql/*.sql))))
LEASE_ISOLATION = $(if $(ISOLATION),$(sort $(basename $(notdir $(wildcard $(HERE)test/lease/specs/*.spec)))))
LEASE_OPTS = --inputdir=$(srcdir)/test/lease --outputdir=output_lease --load-extension=lockfence --load-extension=lockfence_lease --encoding=UTF8 --no-locale

include $(PGXS)

# Each is a line of its own in a rule, and so the shell's end is theirs.
drop_after = trap "'$(bindir)/dropdb' --if-exists $(1)" EXIT;
pg_regress_installcheck := $(call drop_after,$(CONTRIB_TESTDB)) $(pg_regress_installcheck)
pg_isolation_regress_installcheck := $(call drop_after,$(ISOLATION_TESTDB)) $(pg_isolation_regress_installcheck)

installcheck-lease:
	$(if $(LEASE_REGRESS),$(pg_regress_installcheck) $(LEASE_OPTS) --dbname=$(CONTRIB_TESTDB) $(LEASE_REGRESS))
	$(if $(LEASE_ISOLATION),$(pg_isolation_regress_installcheck) $(LEASE_OPTS) --dbname=$(ISOLATION_TESTDB) $(LEASE_ISOLATION))

# Tests present names of all kinds, and are told about them where they ask.
installcheck installcheck-lease: export PGOPTIONS += -c lockfence.unknown_resource=ignore -c lockfence.track=$(TRACK)

.DELETE_ON_ERROR:
lockfence--$(EXTVERSION).sql: $(HERE)sql/lockfence.in $(wildcard $(HERE)sql/*.sql)
	$(HERE)sql/join $< >$@
$(LEASE): $(HERE)sql/lockfence_lease.in $(wildcard $(HERE)sql/*.sql $(HERE)sql/lease/*.sql)
	$(HERE)sql/join $< >$@
lockfence--%.sql: $(HERE)sql/lockfence--%.in $(wildcard $(HERE)sql/*.sql)
	$(HERE)sql/join $< >$@

src/shmem.o src/shmem.bc: $(SOURCES)

# An out-of-tree build has no src/ to put objects in.
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(HERE)src/*.h $(HERE)src/*.def) | $(CURDIR)/src
$(CURDIR)/src:
	mkdir -p $@

validate:
	$(MAKE) -f $(HERE)src/validate/Makefile all
install-validate: validate
	$(MAKE) -f $(HERE)src/validate/Makefile install
run:
	$(MAKE) -f $(HERE)src/run/Makefile all
install-run: run
	$(MAKE) -f $(HERE)src/run/Makefile install
clean: clean-validate clean-run
clean-validate:
	$(MAKE) -f $(HERE)src/validate/Makefile clean
clean-run:
	$(MAKE) -f $(HERE)src/run/Makefile clean

matrix memcheck soak:
	$(HERE)test/$@/run

# Every night; scripts/test has a minute of it.
fuzz:
	$(HERE)test/fuzz/run 100

# The proofs with a real etcd quorum and with leases: docs/pause-kit.md.  SCALE=dev takes three to seven minutes.
pause:
	$(HERE)scripts/pause --scale $(or $(SCALE),full)

# What the fence costs: docs/performance.md.  QUICK=1 takes about five minutes.
bench:
	$(HERE)bench/run $(if $(QUICK),--quick)

.PHONY: installcheck-lease validate install-validate clean-validate run install-run clean-run matrix memcheck soak fuzz pause bench
