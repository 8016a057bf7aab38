import { createContext, useContext } from 'react';

const FormatsContext = createContext(null);

export const FormatsProvider = FormatsContext.Provider;

/** @returns {ReturnType<typeof createFormats>} the formats of the page that is being rendered */
export const useFormats = () => useContext(FormatsContext);

/**
 * Makes the formats of one page. Making an Intl object costs more than using it, so a page makes them once.
 *
 * @param {string} locale a BCP 47 tag such as `en-US`
 * @param {string} currency an ISO 4217 code such as `USD`
 */
export function createFormats(locale, currency) {
  const money = new Intl.NumberFormat(locale, { style: 'currency', currency });
  const percent = new Intl.NumberFormat(locale, { style: 'percent' });
  const count = new Intl.NumberFormat(locale);
  const rating = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const day = new Intl.DateTimeFormat(locale, { weekday: 'short', month: 'short', day: 'numeric', timeZone: 'UTC' });
  const month = new Intl.DateTimeFormat(locale, { month: 'long', year: 'numeric', timeZone: 'UTC' });
  const names = new Intl.Collator(locale);
  return {
    money: (cents) => money.format(cents / 100),
    moneyRange: (fromCents, toCents) => money.formatRange(fromCents / 100, toCents / 100),
    moneyParts: (cents) => money.formatToParts(cents / 100),
    percent: (share) => percent.format(share),
    count: (number) => count.format(number),
    rating: (number) => rating.format(number),
    days: (fromDate, toDate) => day.formatRange(fromDate, toDate),
    month: (date) => month.format(date),
    compareNames: names.compare,
  };
}
