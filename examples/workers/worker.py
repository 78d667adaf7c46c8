#!/usr/bin/env python3
"""A Pawl worker in Python that uses only the standard library. docs/worker-protocol.md explains the protocol.

    PAWL_SERVER=http://127.0.0.1:7295 PAWL_QUEUES=conformance python3 worker.py

Add your own functions to `handlers`. Each gets the task, and an Event that is set when the work must stop.
"""
import http.client
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

SERVER = os.environ.get("PAWL_SERVER", "http://127.0.0.1:7295")
KEY = os.environ.get("PAWL_KEY")
QUEUES = os.environ.get("PAWL_QUEUES", "conformance").split(",")
CONCURRENCY = int(os.environ.get("PAWL_CONCURRENCY", "4"))
DRAIN_SECONDS = float(os.environ.get("PAWL_DRAIN_SECONDS", "30"))
WAIT_SECONDS = 4  # how long a claim waits at the server; a SIGTERM is noticed after that
SESSION = str(uuid.uuid4())
NAME = f"{socket.gethostname()}-{os.getpid()}-{SESSION[:4]}"


class GiveUp(Exception):
    """The task fails without further attempts."""


class RetryIn(Exception):
    def __init__(self, seconds, message):
        super().__init__(message)
        self.seconds = seconds


class Stopped(Exception):
    """The handler was told to stop, and has stopped."""


def conformance(task, stop):
    """The task of the conformance suite. Your own handlers will be simpler."""
    ask = task["payload"]
    what = ask["do"] if task["attempt"] <= ask.get("times", task["attempt"]) else "succeed"
    journal(f"begin {task['id']} {task['epoch']}")
    try:
        if what == "fail":
            raise RuntimeError(ask.get("message", "asked to fail"))
        if what == "giveUp":
            raise GiveUp(ask.get("message", "asked to give up"))
        if what == "retryIn":
            raise RetryIn(ask["seconds"], "asked to be tried again")
        if what == "sleep" and stop.wait(ask["seconds"]):
            raise Stopped()
        return ask.get("output")
    finally:
        journal(f"end {task['id']} {task['epoch']}")


def journal(line):
    if "PAWL_JOURNAL" in os.environ:
        with open(os.environ["PAWL_JOURNAL"], "a") as file:
            file.write(line + "\n")


handlers = {"conformance": conformance}

# --- requests to the server ---


class Away(Exception):
    """The server did not answer, or is not available. The same request may be sent again."""


class Refused(Exception):
    """The server will never accept this request."""


def sync(**parts):
    body = json.dumps({"session": SESSION, "queues": QUEUES, **parts}).encode()
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {KEY}"} if KEY else {})}
    url = f"{SERVER}/v1/workers/{urllib.parse.quote(NAME, safe='')}/sync"
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=parts.get("waitSeconds", 0) + 5) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code >= 500 or error.code in (408, 429):
            raise Away(f"HTTP {error.code}")
        raise Refused(f"HTTP {error.code}: {error.read().decode(errors='replace')}")
    except (OSError, ValueError, http.client.HTTPException) as error:  # no connection, or an incomplete answer
        raise Away(repr(error))


def until_answered(give_up=lambda: False, **parts):
    """Repeats a sync with growing pauses until it is answered. Returns None if it was given up."""
    pause = 0.1
    while not give_up():
        try:
            return sync(**parts)
        except Away as error:
            print(f"{NAME}: {error}", flush=True)
            time.sleep(pause)
            pause = min(pause * 2, 3)


# --- the tasks that this worker holds ---


class Held:
    """A task, from its claim until its report is answered."""

    def __init__(self, task, claimed_at):
        self.task = task
        self.lease = {"id": task["id"], "epoch": task["epoch"]}
        self.ends_at = claimed_at + task["leaseSeconds"]
        self.started_at = None
        self.start_reported = False
        self.stop = threading.Event()
        self.why = None  # why it must stop: lost, cancelled or shutdown

    def interrupt(self, why):
        self.why = self.why or why
        self.stop.set()

    def is_among(self, notices):
        return any((one["id"], one["epoch"]) == (self.task["id"], self.task["epoch"]) for one in notices)

    def needs_beat(self, now):
        is_unreported = self.started_at is not None and not self.start_reported
        return is_unreported or self.ends_at - now < self.task["leaseSeconds"] * 0.6


held = set()
stopping = threading.Event()


def handle_notices(answer):
    """Handles lost leases and cancelled tasks, which any answer may contain."""
    lost = [refusal for refusal in answer["refused"] if refusal["code"] == "LEASE_LOST"]
    for one in list(held):
        if one.is_among(lost):
            one.interrupt("lost")
        elif one.is_among(answer["cancel"]):
            one.interrupt("cancelled")


def keep_beating():
    """Renews leases. One that cannot be renewed ends by our own clock, even if the server has sent nothing."""
    while True:
        time.sleep(0.2)
        now = time.monotonic()
        for one in list(held):
            if now >= one.ends_at:
                one.interrupt("lost")
        due = [one for one in list(held) if one.why != "lost" and one.needs_beat(now)]
        if not due:
            continue
        started = [{**one.lease, "agoMs": (now - one.started_at) * 1000} for one in due if one.started_at]
        try:
            answer = sync(started=started, beats=[one.lease for one in due])
        except (Away, Refused) as error:
            print(f"{NAME}: {error}", flush=True)
            continue
        for one in due:
            if not one.is_among(answer["refused"]):
                one.ends_at = now + one.task["leaseSeconds"]  # from when the beat was sent, not from its answer
                one.start_reported = one.started_at is not None
        handle_notices(answer)


# --- running and reporting ---


def run(one):
    """Runs the handler, then reports. A lost report is sent again; the work is not repeated."""
    report = attempt(one)
    if one.why != "lost":  # another worker may hold it by now, so our report would not count
        settle(one, report)
    held.discard(one)


def attempt(one):
    handler = handlers.get(one.task["type"])
    if handler is None:
        return failed(f"This worker has no handler for tasks of type {one.task['type']}.")
    one.started_at = time.monotonic()
    try:
        return {"outcome": "succeeded", "output": handler(one.task, one.stop)}
    except Stopped:
        return {"outcome": "cancelled" if one.why == "cancelled" else "released"}
    except GiveUp as error:
        return failed(str(error), permanent=True)
    except RetryIn as error:
        return failed(str(error), retryInSeconds=error.seconds)
    except Exception as error:
        return failed(f"{type(error).__name__}: {error}")


def failed(message, **more):
    return {"outcome": "failed", "error": {"message": message, **more}}


def settle(one, report):
    """Sends the report. If the server cannot store it, because it is too large for example, reports a failure instead."""
    for outcome in (report, failed("The report of this attempt was refused by the server.")):
        try:
            refused = until_answered(settled=[{**one.lease, **outcome}])["refused"]
        except Refused as error:
            refused = [{"code": str(error)}]
        if all(refusal["code"] == "LEASE_LOST" for refusal in refused):
            return
        print(f"{NAME}: {refused}", flush=True)


def run_alone(one):
    """Runs a task that may have killed a worker before: alone, and only after its start is acknowledged."""
    while len(held) > 1 and not stopping.is_set():
        time.sleep(0.05)
    answer = until_answered(stopping.is_set, started=[one.lease])
    if answer is None or stopping.is_set():
        settle(one, {"outcome": "released"})
    elif not one.is_among(answer["refused"]) and one.why != "lost":
        one.start_reported = True
        return run(one)
    held.discard(one)


def claim(sync_id):
    """Claims tasks. Repeats the request with the same id until it is answered, so that no claimed task is lost."""
    free = CONCURRENCY - len(held)
    answer = None
    while answer is None:
        sent_at = time.monotonic()
        wait = 0 if stopping.is_set() else WAIT_SECONDS
        try:
            answer = sync(claim=free, syncId=str(sync_id), waitSeconds=wait)
        except Away as error:
            print(f"{NAME}: {error}", flush=True)
            if stopping.wait(0.5):
                return
    handle_notices(answer)
    for task in answer["claimed"]:
        one = Held(task, sent_at + answer["waitedMs"] / 1000)
        held.add(one)
        if stopping.is_set():
            settle(one, {"outcome": "released", "reason": "The worker is shutting down."})
            held.discard(one)
        else:
            threading.Thread(target=run_alone if task["careful"] else run, args=(one,), daemon=True).start()


def wait_until_idle(until):
    while held and time.monotonic() < until:
        time.sleep(0.05)


def main():
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    threading.Thread(target=keep_beating, daemon=True).start()
    syncs = 0
    while not stopping.is_set():
        if len(held) < CONCURRENCY and not any(one.task["careful"] for one in list(held)):
            syncs += 1
            claim(syncs)
        else:
            stopping.wait(0.05)
    wait_until_idle(time.monotonic() + DRAIN_SECONDS)
    for one in list(held):
        one.interrupt("shutdown")
    wait_until_idle(time.monotonic() + 5)


try:
    main()
except Refused as error:
    raise SystemExit(str(error))
