// Package format checks strings against the formats that a schema may name.
//
// It is pure; its functions are safe for concurrent use.
package format

import (
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	netutils "k8s.io/utils/net"
)

// Check returns the check of a format, nil if the format is unknown. Dashes in the name are ignored.
//
// The list is that of KEP-4222 and its successors for the newest version; k8s.io/kube-openapi/pkg/validation/strfmt
// defines the meaning of each. That package is not used because its init delays every start of the server by 5 ms;
// TestFormatsMatchOracle compares each check with it.
func Check(name string) func(string) bool {
	switch strings.ReplaceAll(name, "-", "") {
	case "bsonobjectid":
		return func(s string) bool { return len(s) == 24 && allHex(s) }
	case "uri":
		return func(s string) bool { _, err := url.ParseRequestURI(s); return err == nil }
	case "email":
		return func(s string) bool { a, err := mail.ParseAddress(s); return err == nil && a.Address != "" }
	case "hostname":
		return isHostname
	case "ipv4":
		return func(s string) bool { return netutils.ParseIPSloppy(s) != nil && strings.Contains(s, ".") }
	case "ipv6":
		return func(s string) bool { return net.ParseIP(s) != nil && strings.Contains(s, ":") }
	case "cidr":
		return func(s string) bool { _, _, err := netutils.ParseCIDRSloppy(s); return err == nil }
	case "mac":
		return func(s string) bool { _, err := net.ParseMAC(s); return err == nil }
	case "uuid":
		return func(s string) bool { return isUUID(s, 0) }
	case "uuid3":
		return func(s string) bool { return isUUID(s, '3') }
	case "uuid4":
		return func(s string) bool { return isUUID(s, '4') }
	case "uuid5":
		return func(s string) bool { return isUUID(s, '5') }
	case "isbn":
		return func(s string) bool { return isISBN10(s) || isISBN13(s) }
	case "isbn10":
		return isISBN10
	case "isbn13":
		return isISBN13
	case "creditcard":
		return isCreditCard
	case "ssn":
		return isSSN
	case "hexcolor":
		return isHexColor
	case "rgbcolor":
		return func(s string) bool { return rgbColor().MatchString(s) }
	case "byte":
		return isBase64
	case "password":
		return func(string) bool { return true }
	case "date":
		return isDate
	case "duration":
		return isDuration
	case "datetime":
		return isDateTime
	case "k8sshortname":
		return isShortName
	case "k8slongname":
		return isLongName
	}
	return nil
}

// The patterns of rare formats, compiled at first use.
var (
	hostname = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$`)
	})
	rgbColor = sync.OnceValue(func() *regexp.Regexp {
		const part = `\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*`
		return regexp.MustCompile(`^rgb\(` + part + `,` + part + `,` + part + `\)$`)
	})
	creditCard = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$`)
	})
	durationPart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(\d+)\s*([A-Za-zµ]+)`)
	})
)

func isHostname(s string) bool {
	if len(s) > 255 || !hostname().MatchString(s) {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) > 63 {
			return false
		}
	}
	return true
}

// isUUID accepts upper case and missing dashes. version is the digit that the third group starts with, 0 for any.
func isUUID(s string, version byte) bool {
	for group, size := range [5]int{8, 4, 4, 4, 12} {
		if group > 0 && s != "" && s[0] == '-' {
			s = s[1:]
		}
		if len(s) < size || !allHex(s[:size]) {
			return false
		}
		if version != 0 && group == 2 && s[0] != version {
			return false
		}
		if version > '3' && group == 3 && !strings.ContainsRune("89abAB", rune(s[0])) {
			return false
		}
		s = s[size:]
	}
	return s == ""
}

func allHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isbnDigits removes white space and dashes.
func isbnDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\t\n\f\r -", r) {
			return -1
		}
		return r
	}, s)
}

func isISBN10(s string) bool {
	if s = isbnDigits(s); len(s) != 10 {
		return false
	}
	sum := 0
	for i := range 10 {
		switch {
		case isDigit(s[i]):
			sum += (i + 1) * int(s[i]-'0')
		case i == 9 && s[i] == 'X':
			sum += 100
		default:
			return false
		}
	}
	return sum%11 == 0
}

func isISBN13(s string) bool {
	if s = isbnDigits(s); len(s) != 13 {
		return false
	}
	sum := 0
	for i := range 13 {
		if !isDigit(s[i]) {
			return false
		}
		sum += int(s[i]-'0') * (1 + i%2*2)
	}
	return sum%10 == 0
}

// isCreditCard ignores everything except digits; the digits must be in a known range and have a valid Luhn sum.
func isCreditCard(s string) bool {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
	if !creditCard().MatchString(digits) {
		return false
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0
}

// isSSN requires both separators, each a dash or a space.
func isSSN(s string) bool {
	if len(s) != 11 {
		return false
	}
	for i := range len(s) {
		if i == 3 || i == 6 {
			if s[i] != '-' && s[i] != ' ' {
				return false
			}
		} else if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

func isHexColor(s string) bool {
	s = strings.TrimPrefix(s, "#")
	return (len(s) == 3 || len(s) == 6) && allHex(s)
}

// isBase64 requires padded standard encoding; the empty string is invalid.
func isBase64(s string) bool {
	if s == "" || len(s)%4 != 0 {
		return false
	}
	body := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for i := range len(body) {
		c := body[i]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isDateTime checks RFC 3339 with any character before the fraction of a second; it ignores text after a second t.
func isDateTime(s string) bool {
	at := strings.IndexAny(s, "tT")
	if at < 0 || !isDate(s[:at]) {
		return false
	}
	s = s[at+1:]
	if end := strings.IndexAny(s, "tT"); end >= 0 {
		s = s[:end]
	}
	if len(s) < 9 || s[2] != ':' || s[5] != ':' || !twoDigits(s, 23) || !twoDigits(s[3:], 59) || !twoDigits(s[6:], 59) {
		return false
	}
	s = s[8:]
	if isZone(s) {
		return true
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == '\n' {
		return false
	}
	digits := s[size:]
	zone := strings.TrimLeft(digits, "0123456789")
	return len(zone) < len(digits) && isZone(zone)
}

// isZone accepts z and offsets with any digits.
func isZone(s string) bool {
	if s == "z" || s == "Z" {
		return true
	}
	return len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':' && twoDigits(s[1:], 99) && twoDigits(s[4:], 99)
}

// twoDigits reports whether s starts with two digits that are at most limit.
func twoDigits(s string, limit int) bool {
	return isDigit(s[0]) && isDigit(s[1]) && int(s[0]-'0')*10+int(s[1]-'0') <= limit
}

// isDuration accepts Go's durations and, as Scala does, anything that holds a number with a unit.
func isDuration(s string) bool {
	if _, err := time.ParseDuration(s); err == nil {
		return true
	}
	ok := false
	for _, m := range durationPart().FindAllStringSubmatch(s, -1) {
		if _, err := strconv.Atoi(m[1]); err != nil {
			return false
		}
		ok = ok || isUnit(strings.ToLower(m[2]))
	}
	return ok
}

// isUnit accepts the short names, and the long ones with any ending.
func isUnit(s string) bool {
	switch s {
	case "ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk":
		return true
	}
	for _, long := range [...]string{"nano", "micro", "milli", "sec", "min", "hour", "day", "week"} {
		if strings.HasPrefix(s, long) {
			return true
		}
	}
	return false
}

// isShortName is a label of RFC 1123.
func isShortName(s string) bool { return len(s) <= 63 && isNamePart(s) }

// isLongName accepts a subdomain of RFC 1123 with labels of any length.
func isLongName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isNamePart(part) {
			return false
		}
	}
	return true
}

func isNamePart(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c < 'a' || c > 'z') && c != '-' {
			return false
		}
	}
	return true
}
