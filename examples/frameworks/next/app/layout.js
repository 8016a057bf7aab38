import './style.css';

export const metadata = { title: 'Next behind Corelane' };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
