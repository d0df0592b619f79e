# lockfence: a PGXS extension.  `make`, `make install`, `make installcheck`.
EXTENSION = lockfence
MODULE_big = lockfence

# The control file is the one place that names the version.
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(dir $(lastword $(MAKEFILE_LIST)))lockfence.control)

DATA = $(wildcard $(dir $(lastword $(MAKEFILE_LIST)))sql/lockfence--*.sql)
OBJS = $(patsubst %,src/%.o, \
	lockfence token state mark holder fence contend guard trigarg guarded refuse admin)

PG_CPPFLAGS = -DLOCKFENCE_VERSION='"$(EXTVERSION)"'

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
