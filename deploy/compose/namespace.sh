#!/bin/sh
# The namespace and Longhaul's search attributes; safe to run again.
set -eu
temporal operator namespace describe --namespace default > /dev/null 2>&1 ||
  temporal operator namespace create --namespace default --retention 72h
for attribute in \
  LonghaulState=Keyword \
  LonghaulParent=Keyword \
  LonghaulHost=Keyword \
  LonghaulOpenJobs=Int \
  LonghaulNextReminder=Datetime; do
  temporal operator search-attribute create --namespace default \
    --name "${attribute%%=*}" --type "${attribute#*=}" || true
done
temporal operator search-attribute list --namespace default | grep -q LonghaulNextReminder
