package bowsprit

// Command is one of the commands of the program bowsprit that start a server.
type Command string

// The commands. They share most settings, under the names that kube-apiserver gives them.
const (
	Serve         Command = "serve"
	KubeAPIServer Command = "kube-apiserver"
)

// Setting declares one setting of a Config: what a flag needs to know of it. It is the one declaration for all
// commands.
type Setting struct {
	// Name is that of the flag, without dashes: kube-apiserver's, where it has such a flag.
	Name string
	// Help says in a sentence what the setting does.
	Help string
	// Value points to the setting: *string, *bool, **bool (nil if nothing is said, which means true), *int, *uint,
	// *int64, *float32, *time.Duration, *[]string, *map[string]string, or it is a map[string]any of feature gates,
	// whose values are *bool for those that are off and **bool for those that are on if nothing is said, or a
	// func(bool) that is told what is said.
	Value any
	// Default is what the setting is if nothing is said, of the type that Value points to; nil is its zero.
	Default any
	// Form is how text becomes the value, where its type does not say so.
	Form Form
	// Only is the one command that has the setting, "" for all.
	Only Command
}

// Form is how the text of a flag becomes the value of a setting.
type Form int

// The forms.
const (
	// Plain is as the type says; a list is divided by commas.
	Plain Form = iota
	// Repeated is a list that has one element for each time that the flag is given.
	Repeated
	// Seconds is a duration that is written as a number of seconds.
	Seconds
	// Quoted is a map whose elements are divided by commas, and may have commas themselves if they stand in quotes, as
	// in a line of CSV.
	Quoted
	// Bounded is a number or a duration whose 0 is no bound, which is less than zero in the field.
	Bounded
	// Explicit is a text or a number that is zero in the field if nothing is said. One that is said to be empty or 0
	// becomes "" in quotes or -1 there, which Validate refuses where it has an effect.
	Explicit
	// Ports are ports from one to another: 30000-32767.
	Ports
)
