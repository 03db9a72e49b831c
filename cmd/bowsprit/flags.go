package main

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/help"
)

// bindSettings declares flags for the settings of a command's configuration. otherGates receives the settings of
// unsupported feature gates; nil refuses them.
func bindSettings(f *pflag.FlagSet, c *bowsprit.Config, command bowsprit.Command, otherGates *[]string) {
	for _, s := range c.Settings(command) {
		bind(f, s, otherGates)
		if flag := f.Lookup(s.Name); s.Form == bowsprit.Explicit && flag.DefValue != "0" { // else 0 is the default
			flag.Value = explicit{flag.Value, s.Value}
		}
		help.Put(f, s.Name, s.Group)
	}
}

func bind(f *pflag.FlagSet, s bowsprit.Setting, otherGates *[]string) {
	switch v := s.Value.(type) {
	case *string:
		if s.Form == bowsprit.Ports {
			f.Var(portRange{v, byDefault[string](s)}, s.Name, s.Help)
		} else {
			f.StringVar(v, s.Name, byDefault[string](s), s.Help)
		}
	case **bool:
		f.VarPF(optionalBool{v}, s.Name, "", s.Help).NoOptDefVal = "true"
	case *bool:
		f.BoolVar(v, s.Name, byDefault[bool](s), s.Help)
	case *int:
		if s.Form == bowsprit.Bounded {
			f.Var(bound[int]{v, byDefault[int](s), strconv.Atoi}, s.Name, s.Help)
		} else {
			f.IntVar(v, s.Name, byDefault[int](s), s.Help)
		}
	case *float32:
		f.Float32Var(v, s.Name, byDefault[float32](s), s.Help)
	case *uint:
		f.UintVar(v, s.Name, byDefault[uint](s), s.Help)
	case *int64:
		f.Int64Var(v, s.Name, byDefault[int64](s), s.Help)
	case *time.Duration:
		bindDuration(f, s, v)
	case *[]string:
		if s.Form == bowsprit.Repeated {
			f.StringArrayVar(v, s.Name, byDefault[[]string](s), s.Help)
		} else {
			f.StringSliceVar(v, s.Name, byDefault[[]string](s), s.Help)
		}
	case *map[string]string:
		switch s.Form {
		case bowsprit.Repeated:
			f.Var((*pairs)(v), s.Name, s.Help)
		case bowsprit.Quoted:
			f.StringToStringVar(v, s.Name, nil, s.Help)
		default:
			f.Var((*runtimeConfig)(v), s.Name, s.Help)
		}
	case map[string]any:
		f.Var(featureGates{defaults: v, other: otherGates, logged: map[string]bool{}}, s.Name, s.Help)
	}
}

func bindDuration(f *pflag.FlagSet, s bowsprit.Setting, v *time.Duration) {
	switch s.Form {
	case bowsprit.Seconds:
		f.Var(seconds{v, byDefault[time.Duration](s)}, s.Name, s.Help)
	case bowsprit.Bounded:
		f.Var(bound[time.Duration]{v, byDefault[time.Duration](s), time.ParseDuration}, s.Name, s.Help)
	default:
		f.DurationVar(v, s.Name, byDefault[time.Duration](s), s.Help)
	}
}

// byDefault returns the default of a setting, or the zero value.
func byDefault[T any](s bowsprit.Setting) T {
	v, _ := s.Default.(T)
	return v
}

// settings returns the values of all flags, given or not.
func settings(f *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	f.VisitAll(func(flag *pflag.Flag) { values[flag.Name] = flag.Value.String() })
	return values
}
