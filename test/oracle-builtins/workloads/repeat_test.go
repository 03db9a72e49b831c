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

// concurrency returns the number of stories that run at the same time: most of them wait.
func concurrency() int {
	if n, err := strconv.Atoi(os.Getenv("STORIES_AT_A_TIME")); err == nil {
		return n
	}
	return 12
}

// again is the number of repetitions of a story that differed.
const again = 2

// runAll runs stories, several at a time, and repeats the differing ones twice, alone. Kubernetes' controllers act on
// their caches, so a rare timing gives a result that does not recur (a StatefulSet restores a pod because its own
// deletion has not reached the cache). A difference in every run is an error; a single one only appears in the log.
func runAll(t *testing.T, pair []*side, all []named) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, concurrency())
	differed := make([]error, len(all))
	for i, s := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t.Run(s.name, func(t *testing.T) { differed[i] = runStory(t, pair, s, "") })
		})
	}
	wg.Wait()
	for i, s := range all {
		if differed[i] == nil {
			continue
		}
		t.Run(s.name+" again", func(t *testing.T) {
			err, agreed := repeat(differed[i], func(n int) error {
				return runStory(t, pair, s, fmt.Sprint("-again-", n))
			})
			if agreed {
				t.Logf("it agrees after it has differed: %v", err)
			} else {
				t.Errorf("%v\nthe story:\n%s", err, strings.Join(s.lines, "\n"))
			}
		})
	}
}

// repeat repeats a story until it agrees or has differed again times more, and returns all differences.
func repeat(differed error, run func(n int) error) (all error, agreed bool) {
	for n := range again {
		err := run(n + 1)
		if err == nil {
			return differed, true
		}
		differed = errors.Join(differed, err)
	}
	return differed, false
}

func TestRepeat(t *testing.T) {
	first, wrong := errors.New("first"), errors.New("wrong")
	for _, agreesAt := range []int{1, again, again + 1} {
		count := 0
		err, agreed := repeat(first, func(n int) error {
			if count++; n == agreesAt {
				return nil
			}
			return wrong
		})
		if agreed != (agreesAt <= again) || count != min(agreesAt, again) || !errors.Is(err, first) {
			t.Errorf("agrees when told the %d. time: agreed %v after %d, %v", agreesAt, agreed, count, err)
		}
	}
}

// runStory runs a story once, in a namespace of its name and a suffix.
func runStory(t *testing.T, pair []*side, s named, suffix string) error {
	namespace, _, _ := strings.Cut(s.name, " ")
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	return (&story{namespace: namespace + suffix, sides: pair}).run(ctx, s.lines)
}
