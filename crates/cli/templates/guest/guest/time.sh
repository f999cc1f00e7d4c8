#!/bin/sh
# What it prints is the result of the call: text, or JSON.
exec date "+$TIME_FORMAT"
