package main

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Values of flags. Each stands in a field of bowsprit.Config, where zero is the default.

// portRange is the value of a flag that takes ports from one to another, "" being kube's default for services.
type portRange string

func (p *portRange) Type() string { return "portRange" }

func (p *portRange) String() string { return cmp.Or(string(*p), "30000-32767") }

// Set takes "30000-32767", "30000+100" and a single port.
func (p *portRange) Set(text string) error {
	*p = portRange(text)
	_, err := utilnet.ParsePortRange(text)
	return err
}

// limit is the value of a flag that bounds how many there may be; its 0, no limit, is -1 in the field.
type limit struct {
	to        *int
	byDefault int
}

func (limit) Type() string { return "int" }

func (l limit) String() string {
	if l.to == nil { // as pflag asks to see what a zero value looks like
		return ""
	}
	return strconv.Itoa(max(cmp.Or(*l.to, l.byDefault), 0))
}

func (l limit) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return err
	case n < 0:
		return errors.New("use a number, or 0 for no limit")
	case n == 0:
		n = -1
	}
	*l.to = n
	return nil
}

// life is the value of a flag that says how long something lives; its 0, for ever, is -1 in the field.
type life struct {
	to        *time.Duration
	byDefault time.Duration
}

func (life) Type() string { return "duration" }

func (l life) String() string {
	if l.to == nil {
		return ""
	}
	return max(cmp.Or(*l.to, l.byDefault), 0).String()
}

func (l life) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return errors.New("use a duration such as 1h, or 0 for ever")
	case d == 0:
		d = -1
	}
	*l.to = d
	return nil
}

// seconds is the value of a flag that is a number of them.
type seconds struct {
	to        *time.Duration
	byDefault time.Duration
}

func (seconds) Type() string { return "int" }

func (s seconds) String() string {
	if s.to == nil {
		return ""
	}
	return strconv.Itoa(int(cmp.Or(*s.to, s.byDefault) / time.Second))
}

func (s seconds) Set(text string) error {
	n, err := strconv.Atoi(text)
	*s.to = time.Duration(n) * time.Second
	return err
}
