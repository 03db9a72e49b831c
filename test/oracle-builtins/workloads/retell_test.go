package workloads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// atATime is how many stories are told at the same time: most of them wait.
func atATime() int {
	if n, err := strconv.Atoi(os.Getenv("STORIES_AT_A_TIME")); err == nil {
		return n
	}
	return 12
}

// again is how often a story is told anew that differed.
const again = 2

// tellAll tells stories, several at a time, and those that differ twice more, alone: Kubernetes' controllers act on
// what their caches have seen, so that now and then they take a way that they do not take again (a StatefulSet of whose
// deletion they have not heard gets its pod back). What differs each time is wrong; what differs once is in the log.
func tellAll(t *testing.T, pair []*side, all []named) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atATime())
	differed := make([]error, len(all))
	for i, s := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t.Run(s.name, func(t *testing.T) { differed[i] = tell(t, pair, s, "") })
		})
	}
	wg.Wait()
	for i, s := range all {
		if differed[i] == nil {
			continue
		}
		t.Run(s.name+" again", func(t *testing.T) {
			err, agreed := retell(differed[i], func(n int) error { return tell(t, pair, s, fmt.Sprint("-again-", n)) })
			if agreed {
				t.Logf("it agrees after it has differed: %v", err)
			} else {
				t.Errorf("%v\nthe story:\n%s", err, strings.Join(s.lines, "\n"))
			}
		})
	}
}

// retell tells anew what differed until it agrees or has differed again times more, and returns all that differed.
func retell(differed error, tell func(n int) error) (all error, agreed bool) {
	for n := range again {
		err := tell(n + 1)
		if err == nil {
			return differed, true
		}
		differed = errors.Join(differed, err)
	}
	return differed, false
}

func TestRetell(t *testing.T) {
	first, wrong := errors.New("first"), errors.New("wrong")
	for _, agreesAt := range []int{1, again, again + 1} {
		told := 0
		err, agreed := retell(first, func(n int) error {
			if told++; n == agreesAt {
				return nil
			}
			return wrong
		})
		if agreed != (agreesAt <= again) || told != min(agreesAt, again) || !errors.Is(err, first) {
			t.Errorf("agrees when told the %d. time: agreed %v after %d, %v", agreesAt, agreed, told, err)
		}
	}
}

// tell tells a story once, in a namespace of its name and a suffix.
func tell(t *testing.T, pair []*side, s named, suffix string) error {
	namespace, _, _ := strings.Cut(s.name, " ")
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	return (&story{namespace: namespace + suffix, sides: pair}).run(ctx, s.lines)
}
