// Package flow compares internal/front/flow with Kubernetes' own API Priority and Fairness: the order of requests,
// their schemas, their numbers of seats, and the lending of seats.
//
// ORACLE_FLOW multiplies the number of random cases.
package flow

import (
	"os"
	"strconv"
	"testing"
)

func cases(t *testing.T, n int) int {
	t.Helper()
	if factor, err := strconv.Atoi(os.Getenv("ORACLE_FLOW")); err == nil {
		return n * factor
	}
	return n
}
