package aspod

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// logOf returns the response to a request for the log.
func logOf(o *output, query string) string {
	w := httptest.NewRecorder()
	o.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/log?"+query, nil))
	return w.Body.String()
}

func TestOutput(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := newOutput()
	o.now = func() time.Time { at = at.Add(time.Second); return at }
	var shown strings.Builder
	out, problems := o.tee(streamStdout, &shown), o.tee(streamStderr, io.Discard)
	fmt.Fprint(out, "on")
	fmt.Fprint(problems, "bad\n")
	fmt.Fprint(out, "e\ntwo\nthr")
	if got := shown.String(); got != "one\ntwo\nthr" {
		t.Errorf("the terminal has %q", got)
	}
	for query, want := range map[string]string{
		"":                            "bad\none\ntwo\n",
		"stream=Stdout":               "one\ntwo\n",
		"stream=Stderr":               "bad\n",
		"tailLines=1":                 "two\n",
		"tailLines=0":                 "",
		"tailLines=-1":                "bad\none\ntwo\n",
		"limitBytes=6":                "bad\non",
		"limitBytes=x":                "bad\none\ntwo\n",
		"limitBytes=1&follow=true":    "b",
		"timestamps=true&tailLines=1": "2026-01-02T03:04:08.000000000Z two\n",
		"sinceTime=2026-01-02T03:04:07Z&stream=All": "one\ntwo\n",
	} {
		if got := logOf(o, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestOutputBound checks that long lines are divided, and that the oldest lines go.
func TestOutputBound(t *testing.T) {
	o := newOutput()
	out := o.tee(streamStdout, io.Discard)
	line := strings.Repeat("x", 3*maxLine) + "\n"
	for range maxOutput/len(line) + 10 {
		fmt.Fprint(out, line)
	}
	lines, next, _ := o.from(0)
	size := 0
	for _, l := range lines {
		size += len(l.text)
		if len(l.text) > maxLine {
			t.Fatalf("a line of %d bytes", len(l.text))
		}
	}
	if size > maxOutput || size < maxOutput-2*maxLine || next <= len(lines) {
		t.Errorf("%d lines, %d bytes, next %d", len(lines), size, next)
	}
	if again, _, _ := o.from(next); len(again) != 0 {
		t.Errorf("%d lines after the last one", len(again))
	}
}

// TestOutputFollow follows the log until the client leaves.
func TestOutputFollow(t *testing.T) {
	o := newOutput()
	out := o.tee(streamStdout, io.Discard)
	fmt.Fprintln(out, "before")
	server := httptest.NewServer(o)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	in := bufio.NewScanner(response.Body)
	for _, want := range []string{"before", "after", "last"} {
		if want != "before" {
			fmt.Fprintln(out, want)
		}
		if !in.Scan() || in.Text() != want {
			t.Fatalf("%q, %v, want %q", in.Text(), in.Err(), want)
		}
	}
}
