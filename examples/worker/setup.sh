#!/bin/sh
exec node worker.js setup
