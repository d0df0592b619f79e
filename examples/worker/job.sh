#!/bin/sh
exec node worker.js work
