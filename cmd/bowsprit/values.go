package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// These are the values of flags. Each sets a field of bowsprit.Config, where zero is the default.

// portRange is the value of a flag for a range of ports, such as 30000-32767.
type portRange struct {
	to        *string
	byDefault string
}

// Type names the value in the help, as kube-apiserver's does.
func (portRange) Type() string { return "portRange" }

func (p portRange) String() string {
	if p.to == nil {
		return p.byDefault
	}
	return cmp.Or(*p.to, p.byDefault)
}

// Set takes "30000-32767", "30000+100" and a single port.
func (p portRange) Set(text string) error {
	*p.to = text
	_, err := utilnet.ParsePortRange(text)
	return err
}

// bound is the value of a flag that bounds a number or a time; its 0, no bound, is -1 in the field.
type bound[T int | time.Duration] struct {
	to        *T
	byDefault T
	read      func(text string) (T, error)
}

func (b bound[T]) Type() string {
	if _, timed := any(b.byDefault).(time.Duration); timed {
		return "duration"
	}
	return "int"
}

func (b bound[T]) String() string { return fmt.Sprint(max(cmp.Or(*b.to, b.byDefault), 0)) }

func (b bound[T]) Set(text string) error {
	v, err := b.read(text)
	switch {
	case err != nil:
		return err
	case v < 0:
		return errors.New("must not be negative; its help describes 0")
	case v == 0:
		v = -1
	}
	*b.to = v
	return nil
}

// explicit is the value of a flag that distinguishes a given zero from the default.
type explicit struct {
	pflag.Value
	to any
}

func (e explicit) Set(text string) error {
	if err := e.Value.Set(text); err != nil {
		return err
	}
	switch to := e.to.(type) {
	case *string:
		*to = cmp.Or(*to, `""`)
	case *int:
		*to = cmp.Or(*to, -1)
	case *int64:
		*to = cmp.Or(*to, -1)
	case *float32:
		*to = cmp.Or(*to, -1)
	}
	return nil
}

// seconds is the value of a flag that counts seconds.
type seconds struct {
	to        *time.Duration
	byDefault time.Duration
}

func (seconds) Type() string { return "int" }

func (s seconds) String() string {
	return strconv.Itoa(int(cmp.Or(*s.to, s.byDefault) / time.Second))
}

func (s seconds) Set(text string) error {
	n, err := strconv.Atoi(text)
	*s.to = time.Duration(n) * time.Second
	return err
}

// optionalBool is the value of a flag that is true by default and records whether the user sets it.
type optionalBool struct{ to **bool }

func (optionalBool) Type() string { return "bool" }

func (u optionalBool) String() string {
	if u.to == nil || *u.to == nil {
		return "true"
	}
	return strconv.FormatBool(**u.to)
}

func (u optionalBool) Set(text string) error {
	set, err := strconv.ParseBool(text)
	if err == nil {
		*u.to = &set
	}
	return err
}

// pairs is the value of a flag that is given once for each key=value. The value may contain commas.
type pairs map[string]string

func (*pairs) Type() string { return "mapStringString" }

func (p *pairs) String() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(*p)) {
		all = append(all, key+"="+(*p)[key])
	}
	return strings.Join(all, ",")
}

func (p *pairs) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("malformed pair, expect string=string")
	}
	if *p == nil {
		*p = pairs{}
	}
	(*p)[strings.TrimSpace(key)] = strings.TrimSpace(value)
	return nil
}
