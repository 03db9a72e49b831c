package cluster

import (
	"errors"
	"sync"
	"sync/atomic"
)

// SlowStart calls do(0) to do(n-1) in rounds of one, two, four and so on concurrent calls, and stops after a round with
// a failure. It returns the number of successful calls and one of the errors. A failure that hits every call is thus
// not repeated often.
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

// AtOnce calls do(0) to do(n-1), up to 64 of them concurrently, and joins their errors.
func AtOnce(n int, do func(i int) error) error { return errors.Join(atOnce(n, do)...) }

// abreast is how many calls of a batch run at the same time: each may hold an object as large as a request can be.
const abreast = 64

func atOnce(n int, do func(i int) error) (errs []error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := atomic.Int64{}
	for range min(n, abreast) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return errs
}
