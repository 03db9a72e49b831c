package cluster

import (
	"errors"
	"sync"
)

// SlowStart calls do(0) to do(n-1): one, then two, four and so on at a time, until one of a round has failed. It
// returns how many succeeded and the error of one that failed, so what fails for all is not tried often.
func SlowStart(n int, do func(i int) error) (succeeded int, err error) {
	for first, size := 0, 1; first < n; first, size = first+size, 2*size {
		size = min(size, n-first)
		errs := atOnce(size, func(i int) error { return do(first + i) })
		succeeded += size - len(errs)
		if len(errs) > 0 {
			return succeeded, errs[0]
		}
	}
	return succeeded, nil
}

// AtOnce calls do(0) to do(n-1) at the same time, and returns their errors as one.
func AtOnce(n int, do func(i int) error) error { return errors.Join(atOnce(n, do)...) }

func atOnce(n int, do func(i int) error) (errs []error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := do(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errs
}
