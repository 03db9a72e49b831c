package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// Settings configure the nodes that the server creates, and the location of Stages: bowsprit.WorkloadsConfig.Simulate.
type Settings map[string]string

// mostNodes bounds numbers in settings.
const mostNodes = 100_000

// stagesKey is the one key that is not about nodes.
const stagesKey = "stages"

// Stages returns the Stages of valid settings.
func (s Settings) Stages() []*stage.Stage {
	stages, _ := stage.Read(s[stagesKey])
	return stages
}

// plan is the parsed form of Settings.
type plan struct {
	nodes, zones, pods int
	name               string
	cpu, memory        resource.Quantity
}

// Validate returns the errors in the settings.
func (s Settings) Validate() (errs []error) {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if err := check(key, s[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", key, s[key], err))
		}
	}
	return errs
}

func check(key, value string) error {
	switch key {
	case "nodes", "pods", "zones":
		n, err := strconv.Atoi(value)
		switch {
		case err != nil || n < 0:
			return errors.New("use a number such as 3")
		case n > mostNodes:
			return fmt.Errorf("use a number up to %d", mostNodes)
		}
	case "cpu", "memory":
		if q, err := quantity.Parse(value); err != nil || q.Sign() <= 0 {
			return errors.New("use a quantity such as 8 or 32Gi")
		}
	case "name":
		if strings.Count(value, "%d") != 1 ||
			len(validation.IsDNS1123Subdomain(strings.Replace(value, "%d", "0", 1))) > 0 {
			return errors.New("use a name such as node-%d")
		}
	case stagesKey:
		_, err := stage.Read(value)
		return err
	default:
		return errors.New("known are nodes, name, zones, cpu, memory, pods and stages")
	}
	return nil
}

// read parses valid settings.
func (s Settings) read() plan {
	number := func(key string, otherwise int) int {
		if n, err := strconv.Atoi(s[key]); err == nil {
			return n
		}
		return otherwise
	}
	text := func(key, otherwise string) string {
		if s[key] != "" {
			return s[key]
		}
		return otherwise
	}
	amount := func(key, otherwise string) resource.Quantity {
		q, _ := quantity.Parse(text(key, otherwise)) // check has accepted it
		return q
	}
	return plan{
		nodes: number("nodes", 1), zones: number("zones", 0), pods: number("pods", 110), name: text("name", "node-%d"),
		cpu: amount("cpu", "8"), memory: amount("memory", "32Gi"),
	}
}
