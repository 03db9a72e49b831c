// Package exit defines the exit codes of the commands, and marks errors with them.
//
// An error without a mark is a Failure. Of returns the code of an error.
package exit

import (
	"errors"
	"strings"
)

// Code is the exit code of a command.
type Code int

const (
	// Success means that the command did its work, or that the answer is yes.
	Success Code = iota
	// Failure means that the command could not do its work, or found problems.
	Failure
	// Misuse means that the command line is wrong: the command did nothing.
	Misuse
	// Negative means that the command did its work, and the answer is no: the request is denied, the object is missing.
	Negative
)

// marked is an error with an exit code.
type marked struct {
	error
	code Code
}

// Unwrap returns the error without the mark.
func (m marked) Unwrap() error { return m.error }

// Usage marks an error about the command line. It returns nil for nil.
func Usage(err error) error { return mark(err, Misuse) }

// No marks an error that is a negative answer. It returns nil for nil.
func No(err error) error { return mark(err, Negative) }

func mark(err error, code Code) error {
	if err == nil {
		return nil
	}
	return marked{err, code}
}

// list is an error with a line for each of several problems.
type list struct{ error }

// Unwrap returns the error without the mark.
func (l list) Unwrap() error { return l.error }

// List marks an error of errors.Join: its parts are printed on separate lines, because there may be many. It returns
// nil for nil.
func List(err error) error {
	if err == nil {
		return nil
	}
	return list{err}
}

// Lines returns the texts of an error, each on one line.
func Lines(err error) []string {
	if l := (list{}); errors.As(err, &l) {
		return strings.Split(err.Error(), "\n")
	}
	return []string{strings.ReplaceAll(err.Error(), "\n", "; ")} // errors.Join separates its errors with line breaks
}

// errAnswered is a negative answer that the command has already printed.
var errAnswered = errors.New("")

// Answered returns a negative answer that the command has already printed.
func Answered() error { return No(errAnswered) }

// Ended returns the exit code of a program that the command ran, which printed its own errors. It returns nil for 0.
func Ended(code int) error {
	if code == 0 {
		return nil
	}
	return mark(errAnswered, Code(code))
}

// Silent reports whether the command has already printed all of an error.
func Silent(err error) bool { return errors.Is(err, errAnswered) }

// Of returns the exit code of an error, which may be nil.
func Of(err error) Code {
	if err == nil {
		return Success
	}
	var m marked
	if errors.As(err, &m) {
		return m.code
	}
	return Failure
}
