package ops

import (
	"errors"
)

// Incomplete splits the error beside a list: partitions whose masters do not answer, records that
// this version cannot read, and what else is wrong.
func Incomplete(err error) (parts, unreadable []error, other error) {
	var others []error
	for _, e := range Causes(err) {
		if errors.As(e, new(*UnreachableError)) {
			parts = append(parts, e)
			continue
		}
		//guard:list-whole P8 one record that cannot be read does not hide the others
		if errors.Is(e, ErrUnknownFormat) {
			unreadable = append(unreadable, e)
			continue
		}
		others = append(others, e)
	}
	return parts, unreadable, errors.Join(others...)
}

// Causes are the errors that were joined into one. A wrapped error stays within its wrapper.
func Causes(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Causes(e)...)
	}
	return all
}
